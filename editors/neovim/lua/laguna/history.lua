--- Conversations that the daemon has kept: list, resume, delete.
local chat_of = require('laguna.chat')
local client_of = require('laguna.client')
local notice = require('laguna.notice')
local phrases = require('laguna.phrases')

local M = {}

local function request(client, params, done)
  client:request('laguna/conversations', params, function(err, result)
    if err then
      return notice.fail(notice.explain(err, 'laguna/conversations'))
    end
    done(result)
  end)
end

local function label(conversation)
  local day = os.date('%Y-%m-%d %H:%M', math.floor(conversation.used))
  local turns = conversation.turns == 1 and '1 question' or conversation.turns .. ' questions'
  return ('%s  %s (%s)'):format(day, conversation.title, turns)
end

local function choose(client, prompt, done)
  local root = client_of.root(client, vim.api.nvim_get_current_buf())
  request(client, { action = 'list', root = vim.uri_from_fname(root) }, function(result)
    if #result.conversations == 0 then
      return notice.say('there are no conversations about ' .. root)
    end
    vim.ui.select(result.conversations, { prompt = prompt, format_item = label }, function(chosen)
      if chosen then
        done(chosen, root)
      end
    end)
  end)
end

--- Choose a conversation, and go on with it.
function M.resume()
  local client = client_of.need(vim.api.nvim_get_current_buf())
  if not client then
    return
  end
  choose(client, 'Conversation', function(chosen, root)
    request(client, { action = 'read', conversation = chosen.id }, function(result)
      local chat = chat_of.about(root)
      chat:renew()
      chat.conversation = chosen.id
      for _, turn in ipairs(result.turns) do
        chat.transcript:heading('You')
        chat.transcript:append(turn.question)
        chat.transcript:heading('Laguna')
        chat.transcript:text(turn.answer)
        chat.transcript:line('— ' .. phrases.usage(turn.usage), 'LagunaUsage')
      end
      chat:open()
    end)
  end)
end

--- Choose a conversation, and delete it.
function M.delete()
  local client = client_of.need(vim.api.nvim_get_current_buf())
  if not client then
    return
  end
  choose(client, 'Delete which conversation?', function(chosen)
    request(client, { action = 'delete', conversation = chosen.id }, function()
      notice.say('deleted: ' .. chosen.title)
    end)
  end)
end

return M
