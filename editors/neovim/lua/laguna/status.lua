--- How daemon and engine are: told by the language server, shown in the status line and by :Laguna status.
local client_of = require('laguna.client')
local notice = require('laguna.notice')
local phrases = require('laguna.phrases')

local M = {}

local states = {} ---@type table<integer, table>

--- Handler of `laguna/didChangeStatus`.
function M.changed(_, params, context)
  states[context.client_id] = params
  vim.schedule(vim.cmd.redrawstatus)
end

--- A client is gone.
---@param id integer
function M.forget(id)
  states[id] = nil
end

---@param client vim.lsp.Client
---@return table? what the server said last
function M.of(client)
  return states[client.id]
end

local function warming(state)
  for _, workspace in ipairs(state.workspaces or {}) do
    if workspace.residency == 'warming' and workspace.prefixTokens > 0 then
      return workspace
    end
  end
end

local phases = {
  starting = 'loading',
  backoff = 'restarting',
  failed = 'failed',
  stopping = 'off',
  stopped = 'off',
}

local function word(state)
  if phases[state.engine.phase] then
    return phases[state.engine.phase]
  end
  local workspace = warming(state)
  if workspace then
    return ('reading %s/%s'):format(
      phrases.short(workspace.warmTokens),
      phrases.short(workspace.prefixTokens)
    )
  end
  -- What works less well than it could is worth a look, and no reason to stop working.
  return (state.busy and 'working' or 'ready') .. (state.kind == 'Warning' and ' (!)' or '')
end

--- For the status line: "Laguna: ready"; "" in a buffer that Laguna does not serve.
---@param buf? integer
---@return string
function M.line(buf)
  local client = vim.lsp.get_clients({ name = client_of.name, bufnr = buf or 0 })[1]
  if not client then
    return ''
  end
  local state = states[client.id]
  return 'Laguna: ' .. (state and word(state) or 'connecting')
end

--- What :Laguna status says, line by line.
---@param state table result of `laguna/status`
---@return string[]
function M.describe(state)
  local engine = state.engine
  local lines = { state.message }
  local about = {}
  for _, part in ipairs({ engine.profile ~= '' and 'profile ' .. engine.profile or '', engine.model }) do
    if part ~= '' then
      table.insert(about, part)
    end
  end
  if engine.context > 0 then
    table.insert(about, phrases.count(engine.context) .. ' tokens of context')
  end
  if #about > 0 then
    table.insert(lines, table.concat(about, ', '))
  end
  for _, workspace in ipairs(state.workspaces or {}) do
    local tokens = phrases.count(workspace.prefixTokens)
    local warm = phrases.count(math.min(workspace.warmTokens, workspace.prefixTokens))
    local files = phrases.count(workspace.files)
    local text = ('%s: %s files, %s of %s tokens in the cache'):format(workspace.root, files, warm, tokens)
    table.insert(lines, workspace.waitsFor ~= '' and text .. ', ' .. workspace.waitsFor or text)
  end
  return lines
end

--- What the server says can be done about it, if the user wants.
local function offer(client, command)
  vim.ui.select({ command.title, 'Leave it' }, { prompt = 'Laguna' }, function(_, index)
    if index == 1 then
      client:exec_cmd(command)
    end
  end)
end

--- Ask the server and show its answer.
function M.show()
  local client = client_of.need(vim.api.nvim_get_current_buf())
  if not client then
    return
  end
  client:request('laguna/status', vim.empty_dict(), function(err, state)
    if err then
      return notice.fail(notice.explain(err, 'laguna/status'))
    end
    local say = state.kind == 'Error' and notice.fail or state.kind == 'Warning' and notice.warn or notice.say
    say(table.concat(M.describe(state), '\n'))
    if type(state.command) == 'table' then
      offer(client, state.command)
    end
  end)
end

return M
