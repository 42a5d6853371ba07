--- What the user is told outside of the chat.
local M = {}

local NO_METHOD, BAD_PARAMS = -32601, -32602 -- of JSON-RPC

---@param text string
function M.say(text)
  vim.notify('laguna: ' .. text, vim.log.levels.INFO)
end

---@param text string
function M.warn(text)
  vim.notify('laguna: ' .. text, vim.log.levels.WARN)
end

---@param text string
function M.fail(text)
  vim.notify('laguna: ' .. text, vim.log.levels.ERROR)
end

--- What a failed request says: what happened, what it means, what to do.
---@param err lsp.ResponseError
---@param method string
---@return string
function M.explain(err, method)
  if err.code == NO_METHOD then
    return ('the running laguna-daemon does not offer %s; it is older than this plugin. Update it.'):format(
      method
    )
  end
  if err.code == BAD_PARAMS then
    return (err.message or '') .. ' Perhaps laguna-daemon is older than this plugin: update it.'
  end
  return (err.message or 'no reason given'):gsub('^%l', string.upper)
end

return M
