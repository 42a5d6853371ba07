--- Where questions are written: a few lines below the chat.
local notice = require('laguna.notice')
local place_of = require('laguna.place')
local window = require('laguna.window')

local M = {}

local HEIGHT = 5

local function bar(chat, places)
  local labels = vim.tbl_map(function(place)
    return place_of.label(place, chat.root)
  end, places)
  local about = #labels > 0 and ' about ' .. table.concat(labels, ', ') or ''
  local text = ('Question%s'):format(about):gsub('%%', '%%%%')
  return text .. '%=<CR> or ^S send  @file names a file  q close'
end

--- Files below the root for the word behind @; a 'completefunc'.
function M.complete(findstart, base)
  local before = vim.api.nvim_get_current_line():sub(1, vim.fn.col('.') - 1)
  if findstart == 1 then
    local start = before:match('()@[^%s@]*$')
    return start or -3
  end
  local root = vim.b.laguna_root
  local found = vim.fn.globpath(root, base:sub(2) .. '*', false, true)
  return vim.tbl_map(function(path)
    local slash = vim.fn.isdirectory(path) == 1 and '/' or ''
    return '@' .. vim.fs.relpath(root, path) .. slash
  end, found)
end

local function send(chat, buf, places, source)
  local text = vim.trim(table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n'))
  if text == '' then
    return notice.say('the question is empty.')
  end
  vim.cmd.stopinsert()
  if chat:ask({ text = text, places = places, buf = source }) then
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, {})
    local win = window.of(buf)
    if win then
      vim.api.nvim_win_close(win, true)
    end
    chat:open()
  end
end

--- Open the window for a question about `places`.
---@param chat laguna.Chat
---@param places? laguna.Place[]
---@param source? integer the buffer where it was asked
function M.open(chat, places, source)
  chat:open()
  places = places or {}
  local buf = window.scratch({ name = 'question' .. chat.root, filetype = 'markdown' })
  vim.bo[buf].modifiable = true
  vim.bo[buf].completefunc = "v:lua.require'laguna.composer'.complete"
  vim.b[buf].laguna_root = chat.root
  local win = window.of(buf)
  if win then
    vim.api.nvim_set_current_win(win)
  else
    vim.cmd(('belowright %dsplit'):format(HEIGHT))
    vim.api.nvim_win_set_buf(0, buf)
    win = vim.api.nvim_get_current_win()
  end
  vim.wo[win][0].winbar = bar(chat, places)
  vim.wo[win][0].winfixheight = true
  local function submit()
    send(chat, buf, places, source)
  end
  window.keys(buf, { ['<CR>'] = { 'Send', submit }, q = { 'Close', vim.cmd.close } })
  vim.keymap.set({ 'n', 'i' }, '<C-s>', submit, { buffer = buf, desc = 'Laguna: Send' })
  vim.cmd.startinsert()
end

return M
