--- :checkhealth laguna
local client_of = require('laguna.client')
local options = require('laguna.options')

local M = {}

local health = vim.health
local INSTALL = {
  'Install it in a clone of its repository: pipx install . && laguna-daemon engine install cpu (or gpu).',
  "Or name it: vim.lsp.config('laguna', { cmd = { '/path/to/laguna-daemon', 'lsp' } })",
}

local function editor()
  health.start('Neovim')
  local version = tostring(vim.version())
  if require('laguna.ghost').kind() == 'native' then
    health.ok(version .. ' draws suggestions itself (vim.lsp.inline_completion)')
  else
    health.ok(version .. ' has no inline completion of its own; this plugin draws the suggestions')
  end
  local problems = options.problems()
  for _, problem in ipairs(problems) do
    health.error('vim.g.laguna: ' .. problem, 'See :help laguna-options')
  end
  if #problems == 0 then
    health.ok('vim.g.laguna is in order')
  end
end

local function program()
  health.start('laguna-daemon')
  local config = vim.lsp.config[client_of.name]
  local command = config and config.cmd
  if not config then
    health.error('there is no configuration "laguna"', "The plugin's folder must be on 'runtimepath'")
    return false
  elseif type(command) ~= 'table' then
    health.info('the command is a function; it is not checked')
  elseif vim.fn.executable(command[1]) == 0 then
    health.error(('%s cannot be executed'):format(command[1]), INSTALL)
    return false
  else
    health.ok('program: ' .. vim.fn.exepath(command[1]))
  end
  if vim.lsp.is_enabled(client_of.name) then
    health.ok('enabled')
  else
    health.warn('not enabled', "Put vim.lsp.enable('laguna') into your init.lua")
  end
  return true
end

local function keys(client)
  for buf in pairs(client.attached_buffers) do
    local taken = require('laguna.keys').conflicts(buf)
    if #taken > 0 then
      local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ':~:.')
      local text = ('%s: %s kept for a mapping of the buffer'):format(name, table.concat(taken, ', '))
      health.info(text .. '; choose other keys in vim.g.laguna, or map <Plug>(laguna-accept)')
    end
  end
end

local reports = { Normal = health.ok, Warning = health.warn, Error = health.error, Inactive = health.info }

local function connection(client)
  local name = ('client %d, root %s'):format(client.id, client.root_dir or '(none)')
  local answer, reason = client:request_sync('laguna/status', vim.empty_dict(), 5000)
  if not answer or answer.err then
    local why = answer and answer.err.message or reason or 'no answer'
    health.error(('%s does not answer: %s'):format(name, why), ':Laguna restart; :LspLog says more')
    return
  end
  local server = client.server_info and client.server_info.version or '?'
  health.ok(('%s: laguna-daemon %s answers'):format(name, server))
  local lines = require('laguna.status').describe(answer.result)
  reports[answer.result.kind](table.concat(lines, '\n'))
  keys(client)
end

function M.check()
  editor()
  if not program() then
    return
  end
  local clients = vim.lsp.get_clients({ name = client_of.name })
  if #clients == 0 then
    health.info('not connected: open a file of a project')
  end
  for _, client in ipairs(clients) do
    connection(client)
  end
end

return M
