--- Scratch buffers and where they are shown.
local M = {}

local splits = {
  right = 'botright vertical',
  left = 'topleft vertical',
  below = 'botright',
  above = 'topleft',
}

---@class laguna.Scratch
---@field name string of the buffer, after laguna://
---@field filetype string
---@field lines? string[]

--- An unwritten buffer of that name: the one there is, or a new one.
---@param scratch laguna.Scratch
---@return integer buf
---@return boolean fresh
function M.scratch(scratch)
  local name = 'laguna://' .. scratch.name
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buf) == name and vim.api.nvim_buf_is_loaded(buf) then
      if scratch.lines then
        M.write(buf, scratch.lines)
      end
      return buf, false
    end
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, name)
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].filetype = scratch.filetype
  if scratch.lines then
    M.write(buf, scratch.lines)
  end
  return buf, true
end

--- Replace all lines of a buffer that the user cannot change.
---@param buf integer
---@param lines string[]
function M.write(buf, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

--- The window of this tab page that shows a buffer.
---@param buf integer
---@return integer?
function M.of(buf)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(win) == buf then
      return win
    end
  end
end

--- Show a buffer and go there.
---@param buf integer
---@param position 'right'|'left'|'below'|'above'|'tab'
---@param size number share of the screen, or lines if 1 or more
---@return integer win
function M.open(buf, position, size)
  local win = M.of(buf)
  if win then
    vim.api.nvim_set_current_win(win)
    return win
  end
  if position == 'tab' then
    vim.cmd('tab sbuffer ' .. buf)
  else
    local upright = position == 'right' or position == 'left'
    local whole = upright and vim.o.columns or vim.o.lines
    local cells = size < 1 and math.floor(whole * size) or size
    vim.cmd(('%s sbuffer %d'):format(splits[position], buf))
    local set = upright and vim.api.nvim_win_set_width or vim.api.nvim_win_set_height
    set(0, math.max(cells, 3))
  end
  win = vim.api.nvim_get_current_win()
  vim.wo[win][0].number = false
  vim.wo[win][0].relativenumber = false
  vim.wo[win][0].signcolumn = 'no'
  vim.wo[win][0].wrap = true
  vim.wo[win][0].linebreak = true
  vim.wo[win][0].smoothscroll = true
  return win
end

---@param buf integer
---@param keys table<string, {[1]: string, [2]: fun()}> Normal mode keys: description and what they do
function M.keys(buf, keys)
  for key, action in pairs(keys) do
    vim.keymap.set('n', key, action[2], { buffer = buf, nowait = true, desc = 'Laguna: ' .. action[1] })
  end
end

return M
