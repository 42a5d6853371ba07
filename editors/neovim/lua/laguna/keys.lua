--- Keys of Insert mode: ours while a suggestion is shown, what they were otherwise.
local ghost = require('laguna.ghost')
local options = require('laguna.options')

local M = {}

local actions = {
  accept = { 'Accept the suggestion', ghost.accept },
  accept_word = {
    'Accept a word of the suggestion',
    function()
      return ghost.accept('word')
    end,
  },
  accept_line = {
    'Accept a line of the suggestion',
    function()
      return ghost.accept('line')
    end,
  },
  dismiss = { 'Dismiss the suggestion', ghost.dismiss },
  next = {
    'Next suggestion',
    function()
      ghost.next()
      return true
    end,
  },
}

local function plug(name)
  return ('<Plug>(laguna-%s)'):format((name:gsub('_', '-')))
end

--- <Plug> mappings, for users who choose keys themselves.
function M.define()
  for name, action in pairs(actions) do
    vim.keymap.set('i', plug(name), function()
      action[2]()
    end, { desc = 'Laguna: ' .. action[1] })
  end
end

local function feed(keys, mode)
  vim.api.nvim_feedkeys(keys, mode, false)
end

local function global_map(key)
  local raw = vim.keycode(key)
  for _, map in ipairs(vim.api.nvim_get_keymap('i')) do
    if map.lhsraw == raw or map.lhsrawalt == raw then
      return map
    end
  end
end

--- Do what the key does without us: the user's own mapping, or the key itself.
local function pass_on(key)
  local map = global_map(key)
  if not map then
    return feed(vim.keycode(key), 'in')
  end
  local mode = map.noremap == 1 and 'in' or 'im'
  if map.expr == 1 then
    local result = map.callback and map.callback() or map.rhs and vim.api.nvim_eval(map.rhs)
    result = type(result) == 'string' and result or ''
    local special = map.replace_keycodes == 1 or not map.callback
    feed(special and vim.keycode(result) or result, mode)
  elseif map.callback then
    map.callback()
  else
    feed(vim.keycode(map.rhs or ''), mode)
  end
end

local function taken(buf, key)
  local raw = vim.keycode(key)
  for _, map in ipairs(vim.api.nvim_buf_get_keymap(buf, 'i')) do
    if (map.lhsraw == raw or map.lhsrawalt == raw) and not vim.startswith(map.desc or '', 'Laguna: ') then
      return true
    end
  end
  return false
end

--- Map the keys of the options in a buffer, except those that a mapping of the buffer has already.
---@param buf integer
function M.map(buf)
  for name, key in pairs(options.get().keys) do
    local action = actions[name]
    if key and action and not taken(buf, key) then
      vim.keymap.set('i', key, function()
        if not action[2]() then
          pass_on(key)
        end
      end, { buffer = buf, desc = 'Laguna: ' .. action[1] })
    end
  end
end

--- The keys of the options that a buffer keeps for something else.
---@param buf integer
---@return string[]
function M.conflicts(buf)
  local found = {}
  for _, key in pairs(options.get().keys) do
    if key and taken(buf, key) then
      table.insert(found, key)
    end
  end
  table.sort(found)
  return found
end

return M
