--- Ghost text by Neovim's own vim.lsp.inline_completion (0.12): word and line, and what the server is told of it.
local client_of = require('laguna.client')
local text = require('laguna.ghost.text')

local M = { namespace = vim.api.nvim_create_namespace('nvim.lsp.inline_completion') }

local METHOD = 'textDocument/inlineCompletion'

local asked_at = {} ---@type table<integer, lsp.Position> where the cursor was when a buffer last asked

--- Neovim's object behind a buffer's suggestions. It is not public: all that fails without it is that the rest of a
--- suggestion is back only after the next request, and that the server is not told what was shown.
local function completor(buf)
  local found, capability = pcall(require, 'vim.lsp._capability')
  return found and vim.tbl_get(capability, 'all', 'inline_completion', 'active', buf) or nil
end

--- Neovim's item as a suggestion; nil without a place on the cursor's line.
local function suggestion(buf, item)
  local client = vim.lsp.get_client_by_id(item.client_id)
  if not client or not item.range then
    return nil
  end
  local row, col, _, stop = item.range:to_extmark()
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  local content = item.insert_text
  local asked = asked_at[buf]
  local known = asked and asked.line == row
  local cursor = known and vim.str_byteindex(line, client.offset_encoding, asked.character, false) or stop
  return {
    buf = buf,
    row = row,
    col = col,
    before = line:sub(1, col),
    replaces = math.max(0, stop - cursor),
    text = type(content) == 'table' and content.value or content,
    client_id = item.client_id,
    command = item.command,
    id = vim.tbl_get(item, 'command', 'arguments', 1),
  }
end

--- Give Neovim the rest of a suggestion that was taken in part.
local function put_back(buf, item, rest)
  local object = completor(buf)
  local client = vim.lsp.get_client_by_id(item.client_id)
  if not object or not object.show or not client then
    return
  end
  local line = vim.api.nvim_buf_get_lines(buf, rest.row, rest.row + 1, false)[1]
  local character = vim.str_utfindex(line, client.offset_encoding, rest.col, false)
  local place = { line = rest.row, character = character }
  local ok, range = pcall(vim.range.lsp, buf, { start = place, ['end'] = place }, client.offset_encoding)
  if ok then
    object.current = vim.tbl_extend('force', item, { insert_text = rest.text, range = range })
    object:show()
  end
end

local function tell_shown(buf)
  local object = completor(buf)
  local item = object and object.current
  local current = item and suggestion(buf, item)
  if current and current.id and vim.b[buf].laguna_shown ~= current.id then
    vim.b[buf].laguna_shown = current.id
    text.shown(current)
  end
end

---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  M.refresh(client, buf)
  vim.api.nvim_create_autocmd('LspRequest', {
    group = vim.api.nvim_create_augroup('laguna.ghost.' .. buf, {}),
    buffer = buf,
    callback = function(event)
      local request = event.data.request
      if event.data.client_id ~= client.id or request.method ~= METHOD then
        return
      elseif request.type == 'complete' then
        vim.schedule(function()
          tell_shown(buf)
        end)
      elseif request.type == 'pending' then
        asked_at[buf] = vim.tbl_get(request, 'params', 'position')
      end
    end,
  })
end

---@param buf integer
function M.detach(_, buf)
  asked_at[buf] = nil
  pcall(vim.api.nvim_del_augroup_by_name, 'laguna.ghost.' .. buf)
end

--- Follow a change of the settings.
---@param client vim.lsp.Client
---@param buf integer
function M.refresh(client, buf)
  vim.lsp.inline_completion.enable(client_of.completes(client, buf), { bufnr = buf })
end

--- Accept a word, a line or all; false if nothing is shown.
---@param buf integer
---@param unit 'all'|'word'|'line'
function M.accept(buf, unit)
  return vim.lsp.inline_completion.get({
    bufnr = buf,
    on_accept = function(item)
      local client = vim.lsp.get_client_by_id(item.client_id)
      local ours = client and client.name == client_of.name and suggestion(buf, item)
      if not ours then
        return item
      end
      local rest = text.take(ours, unit)
      if rest then
        put_back(buf, item, rest)
      end
    end,
  })
end

--- Take the suggestion away; false if none is shown.
---@param buf integer
function M.dismiss(buf)
  return vim.lsp.inline_completion.get({
    bufnr = buf,
    on_accept = function() end,
  })
end

function M.next()
  vim.lsp.inline_completion.select()
end

return M
