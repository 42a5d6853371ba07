--- What a question is about: lines of a buffer, and files that its text names.
local M = {}

---@class laguna.Place
---@field buf integer
---@field first integer from 1
---@field last integer
---@field whole boolean all of the file

local function is_function(node)
  local kind = node:type()
  return kind:find('function') or kind:find('method') or kind:find('class') or kind:find('struct')
end

local function has_body(node)
  local first, _, last = node:range()
  return last > first
end

--- The function or class around the cursor, as far as Tree-sitter knows the language.
local function enclosing(buf)
  local parsed, parser = pcall(vim.treesitter.get_parser, buf)
  if not parsed or not parser then
    return nil
  end
  parser:parse()
  local node = vim.treesitter.get_node({ bufnr = buf })
  while node and not (is_function(node) and has_body(node)) do
    node = node:parent()
  end
  if node then
    local first, _, last, column = node:range()
    return first + 1, column == 0 and last or last + 1
  end
end

--- The lines of a command's range, else the function around the cursor, else the file.
---@param command table argument of a user command
---@return laguna.Place
function M.of(command)
  local buf = vim.api.nvim_get_current_buf()
  local count = vim.api.nvim_buf_line_count(buf)
  if command.range > 0 then
    return { buf = buf, first = command.line1, last = command.line2, whole = false }
  end
  local first, last = enclosing(buf)
  if first then
    return { buf = buf, first = first, last = math.min(last, count), whole = false }
  end
  return { buf = buf, first = 1, last = count, whole = true }
end

--- Whether a buffer is a file that questions can refer to.
---@param buf integer
function M.is_file(buf)
  return vim.bo[buf].buftype == '' and vim.api.nvim_buf_get_name(buf) ~= ''
end

---@param place laguna.Place
---@param root string
---@return string as people read it: src/lamp.py:3-9
function M.label(place, root)
  local name = vim.api.nvim_buf_get_name(place.buf)
  local path = vim.fs.relpath(root, name) or name
  if place.whole then
    return path
  elseif place.first == place.last then
    return ('%s:%d'):format(path, place.first)
  end
  return ('%s:%d-%d'):format(path, place.first, place.last)
end

local function lines(first, last)
  local start, stop = { line = first - 1, character = 0 }, { line = last, character = 0 }
  return { start = start, ['end'] = stop }
end

---@param place laguna.Place
---@return table reference as laguna/chat takes it
function M.reference(place)
  local uri = vim.uri_from_bufnr(place.buf)
  return place.whole and { uri = uri } or { uri = uri, range = lines(place.first, place.last) }
end

--- The files that a text names with @path, @path:3 or @path:3-9, as far as they exist below `root`.
---@param text string
---@param root string
---@return table[] references
---@return string[] labels
function M.named(text, root)
  local references, labels = {}, {}
  for before, word in (' ' .. text):gmatch('([%s(])@([^%s,;()]+)') do
    local path, first, last = word:match('^(.-):(%d+)%-?(%d*)[.:?!]*$')
    path = path or word:gsub('[.:?!]+$', '')
    local file = vim.fs.joinpath(root, path)
    if before and vim.fn.filereadable(file) == 1 then
      local start = tonumber(first)
      local range = start and lines(start, tonumber(last) or start)
      table.insert(references, { uri = vim.uri_from_fname(file), range = range })
      table.insert(labels, range and word:gsub('[.:?!]+$', '') or path)
    end
  end
  return references, labels
end

return M
