--- The life of the connection: what is set up in a buffer, streams, and coming back after the daemon has gone.
local client_of = require('laguna.client')
local notice = require('laguna.notice')

local M = {}

local RETRIES = 5
local CALM = 60 -- seconds after which earlier losses are forgotten

local streams = {} ---@type table<string, fun(value: table)>
local losses = {} ---@type number[]
local leaving = false

vim.api.nvim_create_autocmd('VimLeavePre', {
  group = vim.api.nvim_create_augroup('laguna.connection', {}),
  callback = function()
    leaving = true
  end,
})

--- `LspAttach` of any client.
---@param buf integer
---@param id integer
function M.attached(buf, id)
  local client = vim.lsp.get_client_by_id(id)
  if client and client.name == client_of.name then
    require('laguna.ghost').attach(client, buf)
    require('laguna.keys').map(buf)
  end
end

--- `LspDetach` of any client.
---@param buf integer
---@param id integer
function M.detached(buf, id)
  local client = vim.lsp.get_client_by_id(id)
  if client and client.name == client_of.name then
    require('laguna.ghost').detach(client, buf)
  end
end

--- Take the partial results that come under `token`, until `forget`.
---@param token string
---@param take fun(value: table)
function M.stream(token, take)
  streams[token] = take
end

---@param token string
function M.forget(token)
  streams[token] = nil
end

--- Handler of `$/progress`: ours go to who asked, the others where Neovim wants them.
function M.progress(err, params, context)
  local take = params and streams[params.token]
  if take then
    take(params.value)
  else
    return vim.lsp.handlers['$/progress'](err, params, context)
  end
end

local function recent()
  local now = vim.uv.now() / 1000
  losses = vim.tbl_filter(function(time)
    return now - time < CALM
  end, losses)
  table.insert(losses, now)
  return #losses
end

--- `on_exit` of the client: unless Neovim ended it, the daemon has gone away and is started again.
---@param code integer
---@param signal integer
---@param id integer
function M.ended(code, signal, id)
  vim.schedule(function()
    require('laguna.status').forget(id)
    require('laguna.chat').lost(id)
    if leaving or (code == 0 and signal == 0) or signal == 15 or not vim.lsp.is_enabled(client_of.name) then
      return
    end
    local count = recent()
    if count > RETRIES then
      notice.fail('laguna-daemon has gone away too often. :LspLog says why; :Laguna restart tries again.')
      return
    end
    notice.warn('laguna-daemon has gone away; it is started again.')
    vim.defer_fn(M.restart, 250 * 2 ^ count)
  end)
end

--- Start the language server in all buffers that should have it.
function M.restart()
  for _, client in ipairs(vim.lsp.get_clients({ name = client_of.name })) do
    client:stop(true)
  end
  vim.lsp.enable(client_of.name)
end

return M
