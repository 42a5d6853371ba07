--- `:Laguna` and its subcommands.
local chat_of = require('laguna.chat')
local client_of = require('laguna.client')
local notice = require('laguna.notice')
local place_of = require('laguna.place')

local M = {}

--- The chat about the current buffer's root, and the client that serves it.
local function current_chat()
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of.need(buf)
  if client then
    return chat_of.about(client_of.root(client, buf)), buf
  end
end

local function selected(command)
  return command.range > 0 and { place_of.of(command) } or {}
end

--- Open the chat and ask.
local function ask(chat, question)
  local source = vim.api.nvim_get_current_win()
  chat:open()
  if vim.api.nvim_win_is_valid(source) then
    vim.api.nvim_set_current_win(source)
  end
  chat:ask(question)
end

--- A question about lines of the current buffer, which must be a file.
local function ask_about(command, question)
  local chat, buf = current_chat()
  if not chat then
    return
  end
  if not place_of.is_file(buf) then
    return notice.warn('this buffer is no file; go to one first.')
  end
  local place = question.place or place_of.of(command)
  question.buf, question.places = buf, { place }
  question.text = question.text:format((place_of.label(place, chat.root):gsub('%%', '%%%%')))
  ask(chat, question)
end

local function wish(text, prompt, done)
  if text ~= '' then
    return done(text)
  end
  vim.ui.input({ prompt = prompt }, function(given)
    if given and vim.trim(given) ~= '' then
      done(given)
    end
  end)
end

local function task(name, words)
  return function(command, text)
    local more = text ~= '' and (': ' .. text:gsub('%%', '%%%%')) or ''
    ask_about(command, { text = words .. ' %s' .. more, task = name })
  end
end

local function problems_in(place)
  return vim.tbl_filter(function(item)
    return item.lnum + 1 >= place.first and item.lnum + 1 <= place.last
  end, vim.diagnostic.get(place.buf))
end

local function as_lsp(items)
  return vim.tbl_map(function(item)
    local start = { line = item.lnum, character = item.col }
    local stop = { line = item.end_lnum or item.lnum, character = item.end_col or item.col }
    return {
      range = { start = start, ['end'] = stop },
      message = item.message,
      severity = item.severity,
      source = item.source,
    }
  end, items)
end

local function fix(command, text)
  local place = place_of.of(command)
  local problems = problems_in(place)
  if #problems == 0 then
    return notice.say('no problem is reported here; :Laguna refactor takes a wish in words.')
  end
  local what = #problems == 1 and 'the problem' or ('the %d problems'):format(#problems)
  local more = text ~= '' and (': ' .. text:gsub('%%', '%%%%')) or ''
  ask_about(command, {
    text = 'Fix ' .. what .. ' in %s' .. more,
    task = 'fix',
    mode = 'edit',
    place = place,
    diagnostics = { as_lsp(problems) },
  })
end

local function refactor(command, text)
  wish(text, 'Refactor: ', function(given)
    local words = 'Refactor %s without changing what it does: '
    ask_about(command, { text = words .. given:gsub('%%', '%%%%'), mode = 'edit' })
  end)
end

local function toggle()
  local client = client_of.need(vim.api.nvim_get_current_buf())
  if not client then
    return
  end
  local enabled = client_of.completion(client).enabled == false
  client_of.set_completion(client, enabled)
  require('laguna.ghost').refresh()
  notice.say('suggestions are ' .. (enabled and 'on.' or 'off.'))
end

local function question(command, text)
  local chat, buf = current_chat()
  if not chat then
    return
  end
  local places = place_of.is_file(buf) and selected(command) or {}
  wish(text, 'Ask: ', function(given)
    ask(chat, { text = given, places = places, buf = buf })
  end)
end

local function open_chat(command)
  local chat, buf = current_chat()
  if chat then
    local places = place_of.is_file(buf) and selected(command) or {}
    require('laguna.composer').open(chat, places, buf)
  end
end

local function edit(command, text)
  local chat, buf = current_chat()
  if not chat then
    return
  end
  local places = place_of.is_file(buf) and selected(command) or {}
  wish(text, 'Edit: ', function(given)
    ask(chat, { text = given, places = places, buf = buf, mode = 'edit' })
  end)
end

local function review()
  local chat, buf = current_chat()
  if chat then
    ask(chat, { text = 'Review the changes since the last commit.', task = 'review', buf = buf })
  end
end

local function lazily(module, name)
  return function(_, text)
    require(module)[name](text ~= '' and text or nil)
  end
end

local commands = {
  apply = lazily('laguna.preview', 'apply'),
  ask = question,
  chat = open_chat,
  context = lazily('laguna.context', 'show'),
  delete = lazily('laguna.history', 'delete'),
  discard = lazily('laguna.preview', 'discard'),
  document = task('document', 'Document'),
  edit = edit,
  explain = task('explain', 'Explain'),
  fix = fix,
  history = lazily('laguna.history', 'resume'),
  new = function()
    local chat = current_chat()
    if chat then
      chat:renew()
      chat:open()
    end
  end,
  refactor = refactor,
  restart = lazily('laguna.connection', 'restart'),
  review = review,
  status = lazily('laguna.status', 'show'),
  stop = function()
    if not chat_of.stop_all() then
      notice.say('no answer is being written.')
    end
  end,
  tests = task('tests', 'Write tests for'),
  toggle = toggle,
  undo = lazily('laguna.preview', 'undo'),
  warm = lazily('laguna.context', 'warm'),
}

--- Names of all subcommands.
---@return string[]
function M.names()
  local names = vim.tbl_keys(commands)
  table.sort(names)
  return names
end

--- Run `:Laguna ...`.
---@param command table argument of a user command
function M.run(command)
  local name, text = command.args:match('^(%S*)%s*(.*)$')
  name = name ~= '' and name or 'status'
  local found = commands[name]
  if not found then
    return notice.fail(('there is no :Laguna %s. There is: %s'):format(name, table.concat(M.names(), ', ')))
  end
  found(command, vim.trim(text))
end

--- What may follow `line`, whose last word is `lead`.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local before = line:sub(1, #line - #lead):match('Laguna!?%s+(.*)$') or ''
  if before == '' then
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, M.names())
  end
  return before:match('^context%s') and vim.fn.getcompletion(lead, 'file') or {}
end

return M
