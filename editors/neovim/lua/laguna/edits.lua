--- Workspace edits of the protocol: what they make of which file, whether they still fit, and doing it in one step.
--- Text edits are computed here, once: what the preview shows is what is applied, on every Neovim.
local M = {}

---@class laguna.Change of one file
---@field path string
---@field kind 'edit'|'create'|'rename'|'delete'
---@field before string lines end in "\n" alone
---@field after string
---@field from? string where a renamed file was
---@field operation? table of the protocol, for a kind that is no edit

--- The parts of an edit, in order, in the newer of the protocol's two forms.
local function parts(edit)
  if edit.documentChanges then
    return edit.documentChanges
  end
  local found = {}
  for uri, edits in vim.spairs(edit.changes or {}) do
    table.insert(found, { textDocument = { uri = uri }, edits = edits })
  end
  return found
end

--- The buffer that holds a file now, if it is loaded.
local function loaded(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_name(buf) == path then
      return buf
    end
  end
end

--- The text of a buffer as the language server has it.
local function buffer_text(buf)
  local ends = vim.bo[buf].endofline or (vim.bo[buf].fixendofline and not vim.bo[buf].binary)
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  return ends and text .. '\n' or text
end

local function read(path)
  local buf = loaded(path)
  if buf then
    return buffer_text(buf)
  end
  local file = io.open(path, 'rb')
  if not file then
    return ''
  end
  local text = file:read('*a')
  file:close()
  return (text:gsub('\r\n', '\n'))
end

--- Where each line of a text begins, in bytes from 1; the last is where a further line would.
local function starts(text)
  local found = { 1 }
  for position in text:gmatch('()\n') do
    table.insert(found, position + 1)
  end
  return found
end

local function offset(text, lines, position, encoding)
  local start = lines[position.line + 1]
  if not start then
    return #text + 1
  end
  local line = text:sub(start, (lines[position.line + 2] or #text + 2) - 2)
  return start + vim.str_byteindex(line, encoding, position.character, false)
end

--- `text` after edits that do not overlap, all of them about `text` as it is.
---@param text string
---@param edits lsp.TextEdit[]
---@param encoding string
---@return string
function M.applied(text, edits, encoding)
  local lines = starts(text)
  local spans = {}
  for index, edit in ipairs(edits) do
    local first = offset(text, lines, edit.range.start, encoding)
    local behind = offset(text, lines, edit.range['end'], encoding)
    spans[index] = { first = first, behind = behind, index = index, new = edit.newText:gsub('\r\n?', '\n') }
  end
  table.sort(spans, function(a, b)
    if a.first == b.first then
      return a.index < b.index
    end
    return a.first < b.first
  end)
  local pieces, at = {}, 1
  for _, span in ipairs(spans) do
    table.insert(pieces, text:sub(at, span.first - 1))
    table.insert(pieces, span.new)
    at = math.max(at, span.behind)
  end
  table.insert(pieces, text:sub(at))
  return table.concat(pieces)
end

local function operation(files, part)
  local path = vim.uri_to_fname(part.newUri or part.uri)
  local change = { path = path, kind = part.kind, operation = part, before = '', after = '' }
  if part.kind == 'rename' then
    change.from = vim.uri_to_fname(part.oldUri)
    local earlier = files[change.from]
    change.before = earlier and earlier.after or read(change.from)
    change.after = change.before
  elseif part.kind == 'delete' then
    change.before = files[path] and files[path].after or read(path)
  end
  return change
end

--- What an edit does, file by file; several parts about one file become one.
---@param edit lsp.WorkspaceEdit
---@param encoding string
---@return laguna.Change[]
function M.changes(edit, encoding)
  local files, order = {}, {}
  local function add(change)
    files[change.path] = change
    table.insert(order, change)
  end
  for _, part in ipairs(parts(edit)) do
    if part.kind then
      add(operation(files, part))
    else
      local path = vim.uri_to_fname(part.textDocument.uri)
      if not files[path] then
        local text = read(path)
        add({ path = path, kind = 'edit', before = text, after = text })
      end
      files[path].after = M.applied(files[path].after, part.edits, encoding)
    end
  end
  return order
end

--- The files that have changed since `changes` was computed.
---@param changes laguna.Change[]
---@return string[] paths
function M.outdated(changes)
  local found = {}
  for _, change in ipairs(changes) do
    local is_new = change.kind == 'create'
    local source = change.from or change.path
    local stale = is_new and vim.uv.fs_stat(source) ~= nil or not is_new and read(source) ~= change.before
    if stale then
      table.insert(found, source)
    end
  end
  return found
end

--- The open files that had changed already when the edit came.
---@param edit lsp.WorkspaceEdit
---@return string[] paths
function M.late(edit)
  local found = {}
  for _, part in ipairs(parts(edit)) do
    local document = not part.kind and part.textDocument
    local path = document and vim.uri_to_fname(document.uri)
    local buf = path and loaded(path)
    if buf and type(document.version) == 'number' and vim.lsp.util.buf_versions[buf] ~= document.version then
      table.insert(found, path)
    end
  end
  return found
end

local notes = { create = ' (new file)', delete = ' (deleted)', rename = ' (renamed)', edit = '' }

local function diff(change, options)
  local compare = vim.text and vim.text.diff or vim.diff
  return compare(change.before, change.after, options)
end

--- The changes as one unified diff.
---@param changes laguna.Change[]
---@param root string
---@return string[] lines
function M.diff(changes, root)
  local lines = {}
  for _, change in ipairs(changes) do
    local path = vim.fs.relpath(root, change.path) or change.path
    local from = change.from and (vim.fs.relpath(root, change.from) or change.from) or path
    vim.list_extend(lines, { '--- ' .. from, '+++ ' .. path .. notes[change.kind] })
    local hunks = diff(change, { result_type = 'unified', ctxlen = 3 })
    vim.list_extend(lines, vim.split(hunks:gsub('\n$', ''), '\n', { plain = true, trimempty = true }))
  end
  return lines
end

--- Number of lines added and taken away.
---@param changes laguna.Change[]
---@return integer added
---@return integer removed
function M.size(changes)
  local added, removed = 0, 0
  for _, change in ipairs(changes) do
    for _, hunk in ipairs(diff(change, { result_type = 'indices' })) do
      removed, added = removed + hunk[2], added + hunk[4]
    end
  end
  return added, removed
end

--- Give a buffer the text after a change, touching only the lines that differ.
local function replace(buf, change)
  local current = { before = buffer_text(buf), after = change.after }
  local lines = vim.split(change.after, '\n', { plain = true })
  local hunks = diff(current, { result_type = 'indices' })
  for index = #hunks, 1, -1 do
    local first, count, new_first, new_count = unpack(hunks[index])
    local from = count == 0 and first or first - 1
    local new = vim.list_slice(lines, new_first, new_first + new_count - 1)
    vim.api.nvim_buf_set_lines(buf, from, from + count, false, new)
  end
end

local function sequence(buf)
  return vim.fn.undotree(buf).seq_cur
end

---@class laguna.Applied for taking it back
---@field bufs table<integer, {before: integer, after: integer}> undo states
---@field operations integer files created, renamed or deleted, which undo does not take back

--- Do it: in every buffer it is one step to undo.
---@param changes laguna.Change[]
---@param encoding string
---@return laguna.Applied
function M.apply(changes, encoding)
  local done = { bufs = {}, operations = 0 }
  for _, change in ipairs(changes) do
    if change.operation then
      done.operations = done.operations + 1
      vim.lsp.util.apply_workspace_edit({ documentChanges = { change.operation } }, encoding)
    end
    if change.kind ~= 'delete' and change.before ~= change.after then
      local buf = vim.fn.bufadd(change.path)
      vim.fn.bufload(buf)
      vim.bo[buf].buflisted = true
      vim.bo[buf].undolevels = vim.bo[buf].undolevels -- setting it ends the step of what was done before
      local before = sequence(buf)
      replace(buf, change)
      done.bufs[buf] = { before = before, after = sequence(buf) }
    end
  end
  return done
end

--- Take back what `apply` did, unless something was typed since.
---@param done laguna.Applied
---@return string[] kept names of buffers that were left alone
function M.undo(done)
  local kept = {}
  for buf, state in pairs(done.bufs) do
    if vim.api.nvim_buf_is_loaded(buf) and sequence(buf) == state.after then
      vim.api.nvim_buf_call(buf, function()
        vim.cmd('silent undo ' .. state.before)
      end)
    elseif vim.api.nvim_buf_is_valid(buf) then
      table.insert(kept, vim.api.nvim_buf_get_name(buf))
    end
  end
  return kept
end

return M
