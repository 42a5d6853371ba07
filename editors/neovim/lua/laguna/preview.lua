--- A proposed edit: shown as a diff first, then applied or not.
local client_of = require('laguna.client')
local edits = require('laguna.edits')
local notice = require('laguna.notice')
local window = require('laguna.window')

local M = {}

---@type {changes: laguna.Change[], encoding: string, root: string, buf: integer}?
local proposal
---@type laguna.Applied?
local last

local function close()
  local buf = proposal and proposal.buf
  proposal = nil
  if buf and vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_delete(buf, { force = true })
  end
end

local function names(paths, root)
  return table.concat(
    vim.tbl_map(function(path)
      return vim.fs.relpath(root, path) or path
    end, paths),
    ', '
  )
end

--- Show an edit; returns a sentence for the chat.
---@param edit lsp.WorkspaceEdit
---@param client vim.lsp.Client
---@return string
function M.open(edit, client)
  close()
  local root = client_of.root(client)
  local late = edits.late(edit)
  if #late > 0 then
    return names(late, root) .. ' changed while the answer was written, so its edit does not fit. Ask again.'
  end
  local changes = edits.changes(edit, client.offset_encoding)
  if #changes == 0 then
    return 'This answer proposes an edit that changes nothing.'
  end
  local added, removed = edits.size(changes)
  local lines = edits.diff(changes, root)
  local buf = window.scratch({ name = 'edit', filetype = 'diff', lines = lines })
  proposal = { changes = changes, encoding = client.offset_encoding, root = root, buf = buf }
  local win = window.open(buf, 'below', math.min(#lines + 1, math.floor(vim.o.lines / 2)))
  vim.api.nvim_win_set_cursor(win, { 1, 0 })
  vim.wo[win][0].winbar = ('Proposed edit: %d %s, +%d -%d%%=a apply  q discard'):format(
    #changes,
    #changes == 1 and 'file' or 'files',
    added,
    removed
  )
  window.keys(buf, { a = { 'Apply the edit', M.apply }, q = { 'Discard the edit', M.discard } })
  local about = names(
    vim.tbl_map(function(change)
      return change.path
    end, changes),
    root
  )
  return ('Proposed edit of %s: +%d -%d lines. :Laguna apply or :Laguna discard.'):format(
    about,
    added,
    removed
  )
end

--- Apply what is shown.
function M.apply()
  if not proposal then
    return notice.say('there is no proposed edit.')
  end
  local wanted = proposal
  local stale = edits.outdated(wanted.changes)
  if #stale > 0 then
    local which = names(stale, wanted.root)
    return notice.fail(which .. ' changed since this edit was made; nothing was applied.')
  end
  close()
  last = edits.apply(wanted.changes, wanted.encoding)
  local count = vim.tbl_count(last.bufs)
  notice.say(
    ('%d %s changed; :wall writes, :Laguna undo takes back.'):format(
      count,
      count == 1 and 'buffer' or 'buffers'
    )
  )
end

--- Throw away what is shown.
function M.discard()
  if not proposal then
    return notice.say('there is no proposed edit.')
  end
  close()
end

--- Take back the edit that was applied last.
function M.undo()
  if not last then
    return notice.say('no edit was applied.')
  end
  local done = last
  last = nil
  local kept = edits.undo(done)
  if #kept > 0 then
    notice.warn('changed since, so undo it there by hand: ' .. table.concat(kept, ', '))
  end
  if done.operations > 0 then
    notice.warn('files that the edit created, renamed or deleted stay so.')
  end
end

return M
