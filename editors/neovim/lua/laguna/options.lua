--- The plugin's own options, from vim.g.laguna; the language server's stand in vim.lsp.config.
local M = {}

---@class laguna.Options
M.defaults = {
  keys = { -- in Insert mode; false: none
    accept = '<Tab>',
    accept_word = '<M-Right>',
    accept_line = '<M-C-Right>',
    dismiss = '<C-]>',
    next = '<M-]>',
  },
  chat = {
    position = 'right', -- right, left, below, above or tab
    size = 0.4, -- share of the screen
    thinking = true, -- show what a reasoning model thinks
  },
}

local positions = { right = true, left = true, below = true, above = true, tab = true }

---@return laguna.Options
function M.get()
  local given = type(vim.g.laguna) == 'table' and vim.g.laguna or {}
  return vim.tbl_deep_extend('force', M.defaults, given)
end

local function compare(given, known, path, found)
  for name, value in pairs(given) do
    local place = path .. name
    local default = known[name]
    local is_key = path == 'keys.' and value == false
    if default == nil then
      table.insert(found, ('%s is not an option'):format(place))
    elseif type(value) ~= type(default) and not is_key then
      table.insert(found, ('%s must be a %s, not %s'):format(place, type(default), vim.inspect(value)))
    elseif type(value) == 'table' then
      compare(value, default, place .. '.', found)
    end
  end
end

--- What is wrong with vim.g.laguna, one sentence each.
---@return string[]
function M.problems()
  if vim.g.laguna == nil then
    return {}
  end
  if type(vim.g.laguna) ~= 'table' then
    return { 'it must be a table' }
  end
  local found = {}
  compare(vim.g.laguna, M.defaults, '', found)
  if not positions[M.get().chat.position] then
    table.insert(found, 'chat.position must be right, left, below, above or tab')
  end
  table.sort(found)
  return found
end

return M
