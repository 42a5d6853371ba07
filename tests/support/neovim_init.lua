-- The least a user writes to have the assistant in Neovim 0.12, and a record of what it streams.
vim.opt.swapfile = false
vim.lsp.config('laguna', { cmd = vim.json.decode(vim.env.LAGUNA_LSP_COMMAND), root_markers = { '.git' } })
vim.lsp.enable('laguna')
vim.lsp.inline_completion.enable()

local pieces = {}
local show_progress = vim.lsp.handlers['$/progress']
vim.lsp.handlers['$/progress'] = function(err, params, ctx)
  if params.token ~= 'chat' then
    return show_progress(err, params, ctx)
  end
  table.insert(pieces, params.value)
end

local function client()
  return vim.lsp.get_clients({ name = 'laguna' })[1]
end

function _G.Ready()
  return client() ~= nil and client().initialized == true
end

function _G.Ghost()
  local space = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
  local lines = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
    local function add(chunks)
      local texts = vim.tbl_map(function(chunk) return chunk[1] end, chunks)
      table.insert(lines, table.concat(texts))
    end
    add(mark[4].virt_text)
    vim.tbl_map(add, mark[4].virt_lines or {})
  end
  return table.concat(lines, '\n')
end

function _G.Chat(text)
  _G.answer = nil
  pieces = {}
  client():request('laguna/chat', { text = text, partialResultToken = 'chat' }, function(err, result)
    _G.answer = { error = err, result = result, pieces = pieces }
  end)
  return true
end
