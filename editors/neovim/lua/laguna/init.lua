--- What users call from their own configuration.
local M = {}

--- Component for a status line: "Laguna: ready"; "" where Laguna does not serve the buffer.
---@param buf? integer
---@return string
function M.status(buf)
  return require('laguna.status').line(buf)
end

--- Accept the suggestion at the cursor, or its first word or line.
---@param unit? 'all'|'word'|'line'
---@return boolean accepted false if no suggestion is shown
function M.accept(unit)
  return require('laguna.ghost').accept(unit)
end

--- Take the suggestion away.
---@return boolean dismissed false if no suggestion is shown
function M.dismiss()
  return require('laguna.ghost').dismiss()
end

return M
