--- What is in the prompt of a repository, and why a file is not.
local client_of = require('laguna.client')
local notice = require('laguna.notice')
local phrases = require('laguna.phrases')
local window = require('laguna.window')

local M = {}

local function cell(value)
  return ('%10s'):format(phrases.count(value or 0))
end

local function section(title, counts)
  local lines = {}
  for name, count in vim.spairs(counts or {}) do
    if count > 0 then
      table.insert(lines, ('%s  %s'):format(cell(count), name))
    end
  end
  return #lines > 0 and vim.list_extend({ '', title }, lines) or {}
end

local function tokens(file)
  return file.tokens + file.overlayTokens
end

--- The account of a prompt, from the largest file down.
---@param found table result of `laguna/context`
---@return string[]
function M.lines(found)
  local lines = {
    'What stands in front of every question about ' .. found.root,
    '',
    cell(found.prefixTokens) .. '  tokens in all',
    cell(found.snapshotTokens) .. '  in snapshot ' .. found.snapshot:sub(1, 12),
    cell(found.overlayTokens) .. '  in changes since',
    cell(found.budget.context) .. '  fit into the model',
  }
  vim.list_extend(lines, section('Files, by how they are shown', found.tiers))
  vim.list_extend(lines, section('Files without text, by reason', found.skipped))
  vim.list_extend(lines, section('Left out, by reason', found.leftOut))
  for index, finding in ipairs(found.findings or {}) do
    vim.list_extend(lines, index == 1 and { '', 'Secrets that the model sees as markers' } or {})
    table.insert(lines, ('            %s:%d: %s'):format(finding.path, finding.line, finding.kind))
  end
  for _, note in ipairs(found.notices or {}) do
    vim.list_extend(lines, { '', note })
  end
  vim.list_extend(lines, { '', '    tokens  shown     path' })
  local files = vim.list_slice(found.files)
  table.sort(files, function(a, b)
    if tokens(a) == tokens(b) then
      return a.path < b.path
    end
    return tokens(a) > tokens(b)
  end)
  for _, file in ipairs(files) do
    local reason = file.reason ~= '' and (' (%s)'):format(file.reason) or ''
    table.insert(lines, ('%s  %-8s  %s%s'):format(cell(tokens(file)), file.tier, file.path, reason))
  end
  return lines
end

local function camel(value)
  if type(value) ~= 'table' then
    return value
  elseif vim.islist(value) then
    return vim.tbl_map(camel, value)
  end
  local found = {}
  for name, item in pairs(value) do
    found[name:gsub('_(%l)', string.upper)] = camel(item)
  end
  return found
end

--- The same from the command line, which tells it, or why not, where the language server cannot.
local function from_command_line(client, root, why, done)
  local arguments = { 'context' }
  vim.list_extend(arguments, why and { 'why', why } or {})
  vim.list_extend(arguments, { '--repo', root, '--json' })
  client_of.command_line(client, arguments, function(output, reason)
    if not output then
      return notice.fail('the context cannot be shown: ' .. reason)
    end
    done(camel(vim.json.decode(output)))
  end)
end

local function ask(client, root, why, done)
  local params = { root = vim.uri_from_fname(root), why = why }
  client:request('laguna/context', params, function(err, result)
    if err then
      from_command_line(client, root, why, done)
    else
      done(result)
    end
  end)
end

local function sentence(why)
  if type(why.text) == 'string' and why.text ~= '' then
    return why.text
  end
  local rule = why.rule ~= '' and (' The rule is %s in %s.'):format(why.rule, why.source) or ''
  local reason = why.reason ~= '' and (': ' .. why.reason) or ''
  local tier = why.tier ~= '' and (' (%s)'):format(why.tier) or ''
  local where = why.included and 'in the context' or 'not in the context'
  return ('%s is %s%s%s.%s'):format(why.path, where, tier, reason, rule)
end

--- Show the context, or say why one path is or is not in it.
---@param path? string
function M.show(path)
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of.need(buf)
  if not client then
    return
  end
  local root = client_of.root(client, buf)
  if path then
    local absolute = vim.fs.abspath(path)
    return ask(client, root, vim.fs.relpath(root, absolute) or path, function(found)
      notice.say(sentence(found))
    end)
  end
  ask(client, root, nil, function(found)
    local shown =
      window.scratch({ name = 'context' .. root, filetype = 'laguna-context', lines = M.lines(found) })
    local win = window.open(shown, 'below', 0.5)
    vim.wo[win][0].wrap = false
    window.keys(shown, { q = { 'Close', vim.cmd.close } })
  end)
end

--- Read the repository now, so that the next question need not wait for it.
function M.warm()
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of.need(buf)
  if not client then
    return
  end
  local root = client_of.root(client, buf)
  local name = vim.fs.basename(root)
  notice.say('reading ' .. name)
  client:request('laguna/warm', { root = vim.uri_from_fname(root) }, function(err, result)
    if err then
      return notice.fail(notice.explain(err, 'laguna/warm'))
    elseif type(result.usage) == 'table' then
      notice.say(('%s: %s tokens are in the cache.'):format(name, phrases.count(result.usage.promptTokens)))
    else
      local said = table.concat(result.notices, '\n')
      notice.say((said:gsub(vim.pesc(root), (name:gsub('%%', '%%%%')))))
    end
  end)
end

return M
