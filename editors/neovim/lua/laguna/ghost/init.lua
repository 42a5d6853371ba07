--- Suggestions at the cursor: by Neovim itself where it can, else by this plugin.
local M = {}

---@type table
local engine

--- Which of the two draws the suggestions.
---@return 'native'|'extmarks'
function M.kind()
  return vim.lsp.inline_completion and 'native' or 'extmarks'
end

local function get()
  engine = engine or require('laguna.ghost.' .. M.kind())
  return engine
end

---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  get().attach(client, buf)
end

---@param client vim.lsp.Client
---@param buf integer
function M.detach(client, buf)
  get().detach(client, buf)
end

--- Accept what is shown, or its first word or line.
---@param unit? 'all'|'word'|'line'
---@return boolean accepted false if nothing is shown
function M.accept(unit)
  return get().accept(vim.api.nvim_get_current_buf(), unit or 'all')
end

---@return boolean dismissed false if nothing is shown
function M.dismiss()
  return get().dismiss(vim.api.nvim_get_current_buf())
end

--- Show the next suggestion.
function M.next()
  get().next(vim.api.nvim_get_current_buf())
end

--- Follow a change of the settings in all buffers.
function M.refresh()
  for _, client in ipairs(vim.lsp.get_clients({ name = 'laguna' })) do
    for buf in pairs(client.attached_buffers) do
      get().refresh(client, buf)
    end
  end
end

--- The suggestion as it stands on the screen, for tests and bug reports; "" if there is none.
---@return string
function M.visible()
  local lines = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, get().namespace, 0, -1, { details = true })) do
    local rows = vim.list_extend({ mark[4].virt_text or {} }, mark[4].virt_lines or {})
    for _, chunks in ipairs(rows) do
      table.insert(
        lines,
        table.concat(vim.tbl_map(function(chunk)
          return chunk[1]
        end, chunks))
      )
    end
  end
  return table.concat(lines, '\n')
end

return M
