--- The text of a chat: a buffer that grows at its end while an answer comes.
local window = require('laguna.window')

local M = {}
M.__index = M

local marks = vim.api.nvim_create_namespace('laguna.transcript')

---@class laguna.Transcript
---@field buf integer
---@field private waiting? integer mark of the note at the end
---@field private apart boolean what comes next is set apart from what stands there
---@field private thinking boolean the last piece was thinking

---@param name string
---@return laguna.Transcript
function M.new(name)
  local buf = window.scratch({ name = 'chat/' .. name, filetype = 'markdown' })
  vim.bo[buf].modifiable = false
  return setmetatable({ buf = buf, apart = false, thinking = false }, M)
end

--- Add text at the end; windows that show the end follow it.
---@param text string
function M:append(text)
  local buf = self.buf
  local last = vim.api.nvim_buf_line_count(buf)
  local following = vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_cursor(win)[1] >= last
  end, vim.fn.win_findbuf(buf))
  vim.bo[buf].modifiable = true
  local width = #vim.api.nvim_buf_get_lines(buf, -2, -1, false)[1]
  vim.api.nvim_buf_set_text(buf, last - 1, width, last - 1, width, vim.split(text, '\n', { plain = true }))
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  last = vim.api.nvim_buf_line_count(buf)
  for _, win in ipairs(following) do
    vim.api.nvim_win_set_cursor(win, { last, 0 })
  end
end

--- Begin a new line, and leave `blank` lines empty before it.
---@param blank integer
function M:fresh_line(blank)
  local lines = vim.api.nvim_buf_get_lines(self.buf, -1 - blank - 1, -1, false)
  local missing = blank + 1
  for index = #lines, 1, -1 do
    if lines[index] ~= '' then
      break
    end
    missing = missing - 1
  end
  if vim.api.nvim_buf_line_count(self.buf) == 1 and lines[1] == '' then
    missing = 0
  end
  self:append(('\n'):rep(math.max(missing, 0)))
end

--- Begin the part of someone who speaks.
---@param who string
function M:heading(who)
  self:fresh_line(1)
  self:append(('## %s\n\n'):format(who))
  self.apart, self.thinking = false, false
end

--- A line of our own between the texts.
---@param text string
---@param highlight string
function M:line(text, highlight)
  self:fresh_line(1)
  for _, line in ipairs(vim.split(text, '\n', { plain = true })) do
    local row = vim.api.nvim_buf_line_count(self.buf) - 1
    self:append(line .. '\n')
    vim.api.nvim_buf_set_extmark(self.buf, marks, row, 0, { line_hl_group = highlight })
  end
  self.apart = true
end

--- A piece of the answer.
---@param text string
function M:text(text)
  if self.thinking or self.apart then
    self.thinking, self.apart = false, false
    self:fresh_line(1)
  end
  self:append(text)
end

--- A piece of what the model thinks, quoted.
---@param text string
function M:thought(text)
  if not self.thinking then
    self.thinking, self.apart = true, false
    self:fresh_line(1)
    text = '> ' .. text
  end
  local first = vim.api.nvim_buf_line_count(self.buf) - 1
  self:append((text:gsub('\n', '\n> ')))
  for row = first, vim.api.nvim_buf_line_count(self.buf) - 1 do
    vim.api.nvim_buf_set_extmark(self.buf, marks, row, 0, { id = row + 1, line_hl_group = 'LagunaThinking' })
  end
end

--- What is being waited for, behind the last line; nil takes it away.
---@param text? string
function M:wait(text)
  if self.waiting then
    vim.api.nvim_buf_del_extmark(self.buf, marks, self.waiting)
    self.waiting = nil
  end
  if text then
    local row = vim.api.nvim_buf_line_count(self.buf) - 1
    self.waiting = vim.api.nvim_buf_set_extmark(self.buf, marks, row, 0, {
      virt_text = { { text .. ' …', 'LagunaNote' } },
      virt_text_pos = 'overlay',
    })
  end
end

function M:clear()
  window.write(self.buf, {})
  self.thinking, self.waiting = false, nil
end

--- The fenced code block around a line of the transcript (from 1), without its fences.
---@param row integer
---@return string[]?
function M:block(row)
  local lines = vim.api.nvim_buf_get_lines(self.buf, 0, -1, false)
  local fence, start
  for index, line in ipairs(lines) do
    local mark = line:match('^%s*(```+)') or line:match('^%s*(~~~+)')
    if mark and not fence then
      fence, start = mark, index
    elseif mark and vim.startswith(mark, fence) then
      if row >= start and row <= index then
        return vim.list_slice(lines, start + 1, index - 1)
      end
      fence = nil
    end
  end
end

return M
