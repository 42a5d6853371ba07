--- Workspace edits of the protocol: what they do to which file, whether they still fit, and doing it in one step.
local M = {}

---@class laguna.Change of one file
---@field path string
---@field kind 'edit'|'create'|'rename'|'delete'
---@field before string[]
---@field after string[]
---@field from? string where a renamed file was

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
  local buf = vim.fn.bufnr('^' .. vim.fn.fnameescape(path) .. '$')
  for _, each in ipairs(buf > 0 and { buf } or vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(each) == path and vim.api.nvim_buf_is_loaded(each) then
      return each
    end
  end
end

--- The lines of a file as Neovim would have them.
local function read(path)
  local buf = loaded(path)
  if buf then
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  local file = io.open(path, 'rb')
  if not file then
    return {}
  end
  local lines = vim.split(file:read('*a'), '\n', { plain = true })
  file:close()
  if lines[#lines] == '' then
    table.remove(lines)
  end
  return vim.tbl_map(function(line)
    return (line:gsub('\r$', ''))
  end, lines)
end

--- `lines` after `edits`, computed by Neovim's own routine in a buffer that nobody sees.
local function applied(lines, edits, encoding)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.lsp.util.apply_text_edits(edits, buf, encoding)
  local after = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  vim.api.nvim_buf_delete(buf, { force = true })
  if #lines == 0 and after[#after] == '' then
    table.remove(after)
  end
  return after
end

local function operation(files, change)
  local path = vim.uri_to_fname(change.newUri or change.uri)
  if change.kind == 'rename' then
    local from = vim.uri_to_fname(change.oldUri)
    local lines = read(from)
    return { path = path, from = from, kind = 'rename', before = lines, after = lines }
  elseif change.kind == 'delete' then
    return {
      path = path,
      kind = 'delete',
      before = files[path] and files[path].after or read(path),
      after = {},
    }
  end
  return { path = path, kind = 'create', before = {}, after = {} }
end

--- What an edit does, file by file; several parts about one file become one.
---@param edit lsp.WorkspaceEdit
---@param encoding string
---@return laguna.Change[]
function M.changes(edit, encoding)
  local files, order = {}, {}
  for _, part in ipairs(parts(edit)) do
    if part.kind then
      local change = operation(files, part)
      files[change.path] = change
      table.insert(order, change)
    else
      local path = vim.uri_to_fname(part.textDocument.uri)
      local change = files[path]
      if not change then
        local lines = read(path)
        change = { path = path, kind = 'edit', before = lines, after = lines }
        files[path] = change
        table.insert(order, change)
      end
      change.after = applied(change.after, part.edits, encoding)
    end
  end
  return order
end

--- The files that have changed since the edit was made.
---@param edit lsp.WorkspaceEdit
---@return string[] paths
function M.outdated(edit)
  local found = {}
  for _, part in ipairs(parts(edit)) do
    local version = not part.kind and part.textDocument.version
    local path = not part.kind and vim.uri_to_fname(part.textDocument.uri)
    local buf = path and loaded(path)
    if buf and type(version) == 'number' and vim.lsp.util.buf_versions[buf] ~= version then
      table.insert(found, path)
    end
  end
  return found
end

local function text(lines)
  return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
end

local headings = {
  create = 'new file',
  delete = 'deleted',
}

--- The changes as one unified diff.
---@param changes laguna.Change[]
---@param root string
---@return string[] lines
function M.diff(changes, root)
  local diff = vim.text and vim.text.diff or vim.diff
  local lines = {}
  for _, change in ipairs(changes) do
    local path = vim.fs.relpath(root, change.path) or change.path
    local from = change.from and (vim.fs.relpath(root, change.from) or change.from) or path
    local note = headings[change.kind] and (' (%s)'):format(headings[change.kind]) or ''
    vim.list_extend(lines, { ('--- %s%s'):format(from, note), '+++ ' .. path })
    local hunks = diff(text(change.before), text(change.after), { result_type = 'unified', ctxlen = 3 })
    vim.list_extend(lines, vim.split(vim.trim(hunks), '\n', { plain = true, trimempty = true }))
  end
  return lines
end

--- Number of lines added and taken away.
---@param changes laguna.Change[]
---@return integer added
---@return integer removed
function M.size(changes)
  local added, removed = 0, 0
  for _, line in ipairs(M.diff(changes, '')) do
    local sign = line:sub(1, 1)
    local heading = line:match('^%-%-%- ') or line:match('^%+%+%+ ')
    added = added + ((sign == '+' and not heading) and 1 or 0)
    removed = removed + ((sign == '-' and not heading) and 1 or 0)
  end
  return added, removed
end

---@class laguna.Applied for taking it back
---@field bufs table<integer, {before: integer, after: integer}> undo states
---@field operations integer files created, renamed or deleted, which undo does not take back

local function sequence(buf)
  return vim.fn.undotree(buf).seq_cur
end

--- Do it: every file is one step to undo.
---@param edit lsp.WorkspaceEdit
---@param encoding string
---@return laguna.Applied
function M.apply(edit, encoding)
  local done = { bufs = {}, operations = 0 }
  for _, part in ipairs(parts(edit)) do
    if part.kind then
      done.operations = done.operations + 1
    else
      local buf = vim.uri_to_bufnr(part.textDocument.uri)
      if vim.uv.fs_stat(vim.uri_to_fname(part.textDocument.uri)) then
        vim.fn.bufload(buf)
      end
      vim.bo[buf].undolevels = vim.bo[buf].undolevels -- setting it ends the step of what was done before
      done.bufs[buf] = done.bufs[buf] or { before = vim.api.nvim_buf_is_loaded(buf) and sequence(buf) or 0 }
      vim.bo[buf].buflisted = true
    end
  end
  vim.lsp.util.apply_workspace_edit(M.unversioned(edit), encoding)
  for buf, state in pairs(done.bufs) do
    state.after = vim.api.nvim_buf_is_loaded(buf) and sequence(buf) or 0
  end
  return done
end

--- The edit without versions: they were compared before any part was applied, each part makes a new one.
---@param edit lsp.WorkspaceEdit
---@return lsp.WorkspaceEdit
function M.unversioned(edit)
  local copy = vim.deepcopy(edit)
  for _, part in ipairs(copy.documentChanges or {}) do
    if part.textDocument then
      part.textDocument.version = nil
    end
  end
  return copy
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
    else
      table.insert(kept, vim.api.nvim_buf_get_name(buf))
    end
  end
  return kept
end

return M
