--- Suggestions as text: what of one is still to come, and how much of that a word or a line is.
local M = {}

---@class laguna.Suggestion
---@field buf integer
---@field row integer from 0: the line it begins on
---@field col integer bytes: where it begins there
---@field before string what stands left of it
---@field replaces integer bytes right of the cursor that the whole of it replaces
---@field text string
---@field client_id integer
---@field command? lsp.Command
---@field id? string

--- A suggestion as the language server sends it; nil if its place is not in the buffer.
---@param buf integer
---@param client vim.lsp.Client
---@param item lsp.InlineCompletionItem
---@param cursor {[1]: integer, [2]: integer} line and byte from 0, as they were when it was asked for
---@return laguna.Suggestion?
function M.suggestion(buf, client, item, cursor)
  local range = item.range
  local row = range and range.start.line or cursor[1]
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  if not line or row ~= cursor[1] then
    return nil
  end
  local function byte(position)
    return vim.str_byteindex(line, client.offset_encoding, position.character, false)
  end
  local start = range and byte(range.start) or cursor[2]
  local stop = range and range['end'].line == row and byte(range['end']) or cursor[2]
  local text = item.insertText
  return {
    buf = buf,
    row = row,
    col = start,
    before = line:sub(1, start),
    replaces = math.max(0, stop - cursor[2]),
    text = type(text) == 'table' and text.value or text,
    client_id = client.id,
    command = item.command,
    id = vim.tbl_get(item, 'command', 'arguments', 1),
  }
end

--- What the suggestion would still insert at the cursor; nil if the text has gone another way.
---@param suggestion laguna.Suggestion
---@return string?
function M.remaining(suggestion)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local line = vim.api.nvim_get_current_line()
  if row ~= suggestion.row or not vim.startswith(line, suggestion.before) or col < suggestion.col then
    return nil
  end
  local typed = line:sub(suggestion.col + 1, col)
  if vim.startswith(suggestion.text, typed) then
    return suggestion.text:sub(#typed + 1)
  end
end

local units = {
  all = function(text)
    return text
  end,
  -- White space and what follows it: letters up to the word's end, or signs up to a letter.
  word = function(text)
    return vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)\?]])
  end,
  -- To the end of the line; from there, the next line.
  line = function(text)
    return text:match('^\n?[^\n]*')
  end,
}

--- The first word or line of `text`, or all of it.
---@param text string
---@param unit 'all'|'word'|'line'
---@return string
function M.part(text, unit)
  local found = units[unit](text)
  return found ~= '' and found or text
end

local function notify(suggestion, method, params)
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if client and suggestion.id then
    client:notify(method, vim.tbl_extend('force', { id = suggestion.id }, params or {}))
  end
end

---@param suggestion laguna.Suggestion
function M.shown(suggestion)
  notify(suggestion, 'laguna/didShowCompletion')
end

local function tell(suggestion, rest, part)
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if rest == '' then
    if client and suggestion.command then
      client:exec_cmd(suggestion.command, { bufnr = suggestion.buf })
    end
  else
    local done = suggestion.text:sub(1, #suggestion.text - #rest)
    local length = vim.str_utfindex(done, 'utf-16')
    notify(suggestion, 'laguna/didPartiallyAcceptCompletion', { acceptedLength = length })
  end
  return part
end

--- Put the first word or line of a suggestion, or all of it, at the cursor: one step to undo.
---@param suggestion laguna.Suggestion
---@param unit 'all'|'word'|'line'
---@return laguna.Suggestion? rest what is left of it, anchored at the new cursor; nil if nothing is
---@return boolean taken
function M.take(suggestion, unit)
  local remaining = M.remaining(suggestion)
  if not remaining or remaining == '' then
    return nil, false
  end
  local part = M.part(remaining, unit)
  local rest = remaining:sub(#part + 1)
  local buf = suggestion.buf
  local cursor = vim.api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local stop = rest == '' and math.min(col + suggestion.replaces, #vim.api.nvim_get_current_line()) or col
  vim.bo[buf].undolevels = vim.bo[buf].undolevels -- setting it ends the undo step of what was typed
  local lines = vim.split(part, '\n', { plain = true })
  vim.api.nvim_buf_set_text(buf, row, col, row, stop, lines)
  local last = lines[#lines]
  row, col = row + #lines - 1, (#lines == 1 and col or 0) + #last
  vim.api.nvim_win_set_cursor(0, { row + 1, col })
  tell(suggestion, rest, part)
  if rest == '' then
    return nil, true
  end
  local before = vim.api.nvim_get_current_line():sub(1, col)
  return vim.tbl_extend('force', suggestion, { row = row, col = col, before = before, text = rest }), true
end

return M
