--- Ghost text for Neovim 0.11, which has none of its own: asked for, shown and accepted here.
local client_of = require('laguna.client')
local text = require('laguna.ghost.text')

local M = { namespace = vim.api.nvim_create_namespace('laguna.ghost') }

local METHOD = 'textDocument/inlineCompletion'
local INVOKED, AUTOMATIC = 1, 2
local PAUSE = 75 -- ms without a key before the server is asked; it waits longer where that is better

---@class laguna.Ghost one buffer's
---@field client_id integer
---@field timer? uv.uv_timer_t
---@field request? integer
---@field all laguna.Suggestion[]
---@field current? laguna.Suggestion

local buffers = {} ---@type table<integer, laguna.Ghost>

local function inserting()
  return vim.startswith(vim.api.nvim_get_mode().mode, 'i')
end

local function hide(buf)
  vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
end

--- Draw what is left of the current suggestion; false if there is none that fits.
local function show(buf)
  hide(buf)
  local ghost = buffers[buf]
  local rest = ghost.current and text.remaining(ghost.current)
  if not rest or rest == '' then
    ghost.current = nil
    return false
  end
  local chunks = vim.tbl_map(function(line)
    return { { line, 'LagunaGhost' } }
  end, vim.split(rest, '\n', { plain = true }))
  local cursor = vim.api.nvim_win_get_cursor(0)
  vim.api.nvim_buf_set_extmark(buf, M.namespace, cursor[1] - 1, cursor[2], {
    virt_text = chunks[1],
    virt_text_pos = 'inline',
    virt_lines = vim.list_slice(chunks, 2),
    hl_mode = 'combine',
  })
  return true
end

local function stop_waiting(ghost)
  if ghost.timer then
    ghost.timer:stop()
    if not ghost.timer:is_closing() then
      ghost.timer:close()
    end
    ghost.timer = nil
  end
end

local function cancel(ghost)
  stop_waiting(ghost)
  local client = vim.lsp.get_client_by_id(ghost.client_id)
  if ghost.request and client then
    client:cancel_request(ghost.request)
  end
  ghost.request = nil
end

local function select(buf, suggestion)
  buffers[buf].current = suggestion
  if show(buf) then
    text.shown(suggestion)
  end
end

local function answered(buf, cursor, result)
  local ghost = buffers[buf]
  local client = ghost and vim.lsp.get_client_by_id(ghost.client_id)
  -- No answer at all means that the text has moved on; what is shown stays.
  if not client or not result or not inserting() or vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  ghost.all = {}
  for _, item in ipairs(result.items or result) do
    local suggestion = text.suggestion(buf, client, item, cursor)
    if suggestion and text.remaining(suggestion) then
      table.insert(ghost.all, suggestion)
    end
  end
  select(buf, ghost.all[1])
end

local function request(buf, kind)
  local ghost = buffers[buf]
  local client = ghost and vim.lsp.get_client_by_id(ghost.client_id)
  if not client or not inserting() or vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  cancel(ghost)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local cursor = vim.api.nvim_win_get_cursor(0)
  local place = { cursor[1] - 1, cursor[2] }
  local sent, id
  sent, id = client:request(METHOD, params, function(err, result)
    if buffers[buf] and buffers[buf].request == id then
      buffers[buf].request = nil
      if not err then
        answered(buf, place, result)
      end
    end
  end, buf)
  ghost.request = sent and id or nil
end

--- The text or the cursor has changed: a suggestion that still says the same stays, else a new one is asked for.
local function changed(buf)
  local ghost = buffers[buf]
  if show(buf) then
    return
  end
  cancel(ghost)
  local client = vim.lsp.get_client_by_id(ghost.client_id)
  if not client or not client_of.completes(client, buf) then
    return
  end
  ghost.timer = vim.defer_fn(function()
    request(buf, AUTOMATIC)
  end, PAUSE)
end

--- Take the suggestion away and stop what is being made.
---@param buf integer
function M.dismiss(buf)
  local ghost = buffers[buf]
  if not ghost then
    return false
  end
  local had = ghost.current ~= nil
  cancel(ghost)
  ghost.current = nil
  hide(buf)
  return had
end

---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  buffers[buf] = { client_id = client.id, all = {} }
  local group = vim.api.nvim_create_augroup('laguna.ghost.' .. buf, {})
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedP' }, {
    group = group,
    buffer = buf,
    callback = function()
      changed(buf)
    end,
  })
  vim.api.nvim_create_autocmd('InsertLeave', {
    group = group,
    buffer = buf,
    callback = function()
      M.dismiss(buf)
    end,
  })
end

---@param client vim.lsp.Client
---@param buf integer
function M.detach(client, buf)
  if not buffers[buf] or buffers[buf].client_id ~= client.id then
    return
  end
  pcall(vim.api.nvim_del_augroup_by_name, 'laguna.ghost.' .. buf)
  if vim.api.nvim_buf_is_valid(buf) then
    M.dismiss(buf)
  end
  buffers[buf] = nil
end

--- Follow a change of the settings.
---@param client vim.lsp.Client
---@param buf integer
function M.refresh(client, buf)
  if buffers[buf] and not client_of.completes(client, buf) then
    M.dismiss(buf)
  end
end

--- Accept a word, a line or all; false if nothing is shown.
---@param buf integer
---@param unit 'all'|'word'|'line'
function M.accept(buf, unit)
  local ghost = buffers[buf]
  if not ghost or not ghost.current then
    return false
  end
  local rest, taken = text.take(ghost.current, unit)
  ghost.current = rest
  show(buf)
  return taken
end

--- Show the next suggestion, or ask for one if none is shown.
---@param buf integer
function M.next(buf)
  local ghost = buffers[buf]
  if not ghost then
    return
  end
  if #ghost.all > 1 and ghost.current then
    local first = table.remove(ghost.all, 1)
    table.insert(ghost.all, first)
    select(buf, ghost.all[1])
  elseif not ghost.current then
    request(buf, INVOKED)
  end
end

return M
