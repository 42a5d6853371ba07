--- Conversations with the model: questions out, answers in as they come.
local client_of = require('laguna.client')
local notice = require('laguna.notice')
local options = require('laguna.options')
local phrases = require('laguna.phrases')
local place_of = require('laguna.place')
local window = require('laguna.window')

local M = {}
local Chat = {}
Chat.__index = Chat

---@class laguna.Chat one root's
---@field root string
---@field transcript laguna.Transcript
---@field conversation? string
---@field told string[] notices that were shown while the answer came
---@field running? {client: integer, request: integer, token: string, question: laguna.Question}

---@class laguna.Question
---@field text string
---@field places? laguna.Place[]
---@field mode? 'ask'|'edit'
---@field task? string one that the server has words for
---@field diagnostics? table<integer, lsp.Diagnostic[]> by the place's index
---@field buf? integer where it was asked

local chats = {} ---@type table<string, laguna.Chat>
local numbers = 0

--- The chat about a root.
---@param root string
---@return laguna.Chat
function M.about(root)
  local chat = chats[root]
  if not chat or not vim.api.nvim_buf_is_loaded(chat.transcript.buf) then
    local transcript = require('laguna.transcript').new(root)
    chat = setmetatable({ root = root, transcript = transcript }, Chat)
    chats[root] = chat
    window.keys(transcript.buf, {
      i = {
        'Ask',
        function()
          require('laguna.composer').open(chat)
        end,
      },
      gy = {
        'Copy the code block',
        function()
          chat:copy()
        end,
      },
      ['<C-c>'] = {
        'Stop the answer',
        function()
          chat:stop()
        end,
      },
      q = { 'Close', vim.cmd.close },
    })
  end
  return chat
end

--- Show the chat.
function Chat:open()
  local chosen = options.get().chat
  local win = window.open(self.transcript.buf, chosen.position, chosen.size)
  local name = vim.fs.basename(self.root):gsub('%%', '%%%%')
  vim.wo[win][0].winbar = ('Laguna: %s%%<%%= i ask  gy copy  q close'):format(name)
  vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(self.transcript.buf), 0 })
end

--- Ask, and show the answer as it comes.
---@param question laguna.Question
---@return boolean asked
function Chat:ask(question)
  if self.running then
    notice.warn('an answer is still being written; :Laguna stop ends it.')
    return false
  end
  local client = client_of.need(question.buf)
  if not client then
    return false
  end
  local labels, references = {}, {}
  for index, place in ipairs(question.places or {}) do
    local reference = place_of.reference(place)
    reference.diagnostics = vim.tbl_get(question, 'diagnostics', index)
    table.insert(references, reference)
    table.insert(labels, place_of.label(place, self.root))
  end
  local named, names = place_of.named(question.text, self.root)
  vim.list_extend(references, named)
  vim.list_extend(labels, names)
  local transcript = self.transcript
  transcript:heading('You')
  transcript:append(question.text)
  if #labels > 0 then
    transcript:line('about ' .. table.concat(labels, ', '), 'LagunaUsage')
  end
  transcript:heading('Laguna')
  return self:send(client, question, references)
end

---@private
function Chat:send(client, question, references)
  numbers = numbers + 1
  local token = 'laguna-chat-' .. numbers
  local connection = require('laguna.connection')
  connection.stream(token, function(value)
    self:take(value)
  end)
  self.transcript:wait('Waiting')
  self.told = {}
  local running = { client = client.id, token = token, question = question }
  self.running = running
  local sent, request = client:request('laguna/chat', {
    text = question.text,
    root = vim.uri_from_fname(self.root),
    conversation = self.conversation,
    references = references,
    mode = question.mode,
    task = question.task,
    partialResultToken = token,
  }, function(err, result)
    connection.forget(token)
    if self.running == running then
      self.running = nil
      self:finish(client, question, err, result)
    end
  end, question.buf)
  running.request = request
  if not sent then
    self:abandon('laguna-daemon has gone away before the question.', 'LagunaError')
  end
  return sent
end

---@private
function Chat:take(value)
  local transcript = self.transcript
  if value.kind == 'progress' then
    return transcript:wait(phrases.progress(value))
  end
  transcript:wait()
  if value.kind == 'text' then
    transcript:text(value.text)
  elseif value.kind == 'thinking' then
    if options.get().chat.thinking then
      transcript:thought(value.text)
    else
      transcript:wait('Thinking')
    end
  elseif value.kind == 'notice' then
    table.insert(self.told, value.message)
    transcript:line(value.message, 'LagunaNote')
  end
end

---@private
function Chat:finish(client, question, err, result)
  local transcript = self.transcript
  transcript:wait()
  if err then
    return transcript:line(notice.explain(err, 'laguna/chat'), 'LagunaError')
  end
  if type(result.conversation) == 'string' then
    self.conversation = result.conversation
  end
  transcript:line('— ' .. phrases.usage(result.usage), 'LagunaUsage')
  for _, message in ipairs(result.notices or {}) do
    if not vim.list_contains(self.told, message) then
      transcript:line(message, 'LagunaNote')
    end
  end
  if question.mode == 'edit' and type(result.edit) == 'table' then
    transcript:line(require('laguna.preview').open(result.edit, client), 'LagunaNote')
  end
end

--- End the answer; the engine stops.
function Chat:stop()
  local running = self.running
  local client = running and vim.lsp.get_client_by_id(running.client)
  if not running then
    return notice.say('no answer is being written.')
  end
  if client then
    client:cancel_request(running.request)
  end
  -- Neovim swallows the answer to a request that was cancelled.
  self:abandon('Stopped.', 'LagunaNote')
end

---@private
function Chat:abandon(reason, highlight)
  require('laguna.connection').forget(self.running.token)
  self.running = nil
  self.transcript:wait()
  self.transcript:line(reason, highlight)
end

--- Forget the conversation and begin a new one.
function Chat:renew()
  if self.running then
    self:stop()
  end
  self.conversation = nil
  self.transcript:clear()
end

--- Copy the code block under the cursor to the unnamed register.
function Chat:copy()
  local block = self.transcript:block(vim.api.nvim_win_get_cursor(0)[1])
  if not block then
    return notice.say('there is no code block under the cursor.')
  end
  vim.fn.setreg('"', block, 'V')
  notice.say(('%d lines copied; p puts them.'):format(#block))
end

--- The client has ended: its answers with it.
---@param id integer
function M.lost(id)
  for _, chat in pairs(chats) do
    if chat.running and chat.running.client == id then
      chat:abandon('laguna-daemon has gone away before the answer was complete. Ask again.', 'LagunaError')
    end
  end
end

--- End every answer that is being written; false if there was none.
function M.stop_all()
  local stopped = false
  for _, chat in pairs(chats) do
    if chat.running then
      stopped = true
      chat:stop()
    end
  end
  return stopped
end

return M
