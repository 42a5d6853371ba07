--- Sentences made of figures.
local M = {}

--- A number with its thousands set apart.
---@param value number
---@return string
function M.count(value)
  local digits = tostring(math.floor(value + 0.5))
  return (digits:reverse():gsub('(%d%d%d)', '%1,'):reverse():gsub('^,', ''))
end

--- A number of tokens, short: 950, 1.2K, 96K.
---@param value number
---@return string
function M.short(value)
  if value < 1000 then
    return tostring(math.floor(value))
  end
  return (value < 10000 and '%.1fK' or '%.0fK'):format(value / 1000)
end

local function seconds(milliseconds)
  if milliseconds < 1000 then
    return ('%.2f s'):format(milliseconds / 1000)
  end
  return ('%.1f s'):format(milliseconds / 1000)
end

--- What an answer cost, in one line.
---@param usage table the `usage` of a chat's result
---@return string
function M.usage(usage)
  local share = ''
  if usage.promptTokens > 0 then
    share = (' (%d%%)'):format(math.floor(100 * usage.cachedTokens / usage.promptTokens))
  end
  local read = ('%s tokens read, %s from the cache%s'):format(
    M.count(usage.promptTokens),
    M.count(usage.cachedTokens),
    share
  )
  local parts = { read }
  if type(usage.ttftMs) == 'number' then
    table.insert(parts, 'first word after ' .. seconds(usage.ttftMs))
  end
  table.insert(parts, ('%s tokens written in %s'):format(M.count(usage.outputTokens), seconds(usage.totalMs)))
  if type(usage.brokeAt) == 'string' then
    table.insert(parts, 'read anew from ' .. usage.brokeAt)
  end
  if usage.finishReason == 'length' then
    table.insert(parts, 'cut off at the longest answer allowed')
  end
  return table.concat(parts, ' · ')
end

--- Work before the first word: "Reading, 96K of 190K".
---@param event table a partial result of kind `progress`
---@return string
function M.progress(event)
  if type(event.done) == 'number' and type(event.total) == 'number' and event.total > 0 then
    return ('%s %s of %s'):format(event.message, M.short(event.done), M.short(event.total))
  end
  return event.message
end

return M
