--- Which language server client serves a buffer, and requests to it.
local notice = require('laguna.notice')

local M = { name = 'laguna' }

local ABSENT =
  'no laguna-daemon serves this buffer. Open a file of the project; :checkhealth laguna says more.'

--- The client of a buffer; of a buffer that has none, the client that was started last.
---@param buf? integer
---@return vim.lsp.Client?
function M.find(buf)
  local clients = vim.lsp.get_clients({ name = M.name, bufnr = buf })
  if #clients == 0 then
    clients = vim.lsp.get_clients({ name = M.name })
  end
  for index = #clients, 1, -1 do
    if not clients[index]:is_stopped() then
      return clients[index]
    end
  end
end

--- As `find`, telling the user if there is none.
---@param buf? integer
---@return vim.lsp.Client?
function M.need(buf)
  local client = M.find(buf)
  if not client then
    notice.warn(ABSENT)
  end
  return client
end

--- The root that a client's requests are about; of a client without one, the folder of the buffer's file.
---@param client vim.lsp.Client
---@param buf? integer
---@return string
function M.root(client, buf)
  if client.root_dir then
    return client.root_dir
  end
  local name = buf and vim.api.nvim_buf_get_name(buf) or ''
  return name ~= '' and vim.fs.dirname(name) or vim.fn.getcwd()
end

--- The settings under `laguna.completion` that a client was given.
---@param client vim.lsp.Client
---@return table
function M.completion(client)
  return vim.tbl_get(client.settings or {}, 'laguna', 'completion') or {}
end

--- Whether suggestions come by themselves in a buffer, by the settings `enabled` and `languages`.
---@param client vim.lsp.Client
---@param buf integer
---@return boolean
function M.completes(client, buf)
  local settings = M.completion(client)
  local languages = settings.languages or {}
  local own = languages[client.get_language_id(buf, vim.bo[buf].filetype)]
  if own == nil then
    own = languages['*']
  end
  return settings.enabled ~= false and own ~= false
end

--- Turn suggestions on or off for this session; the server is told.
---@param client vim.lsp.Client
---@param enabled boolean
function M.set_completion(client, enabled)
  client.settings = vim.tbl_deep_extend('force', client.settings or {}, {
    laguna = { completion = { enabled = enabled } },
  })
  client:notify('workspace/didChangeConfiguration', { settings = client.settings })
end

--- Run one of the daemon's commands beside the language server; `done` gets its output, or nil and the reason.
---@param client vim.lsp.Client
---@param arguments string[]
---@param done fun(output?: string, reason?: string)
function M.command_line(client, arguments, done)
  local command = client.config.cmd
  if type(command) ~= 'table' or command[#command] ~= 'lsp' then
    return done(nil, 'the command of the language server is not one that ends in "lsp"')
  end
  local argv = vim.list_extend(vim.list_slice(command, 1, #command - 1), arguments)
  local options = { text = true, env = client.config.cmd_env }
  local ok, reason = pcall(vim.system, argv, options, function(result)
    vim.schedule(function()
      if result.code == 0 then
        done(result.stdout)
      else
        done(nil, vim.trim(result.stderr ~= '' and result.stderr or ('exit code ' .. result.code)))
      end
    end)
  end)
  if not ok then
    done(nil, tostring(reason))
  end
end

return M
