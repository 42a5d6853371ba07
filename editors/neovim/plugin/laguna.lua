if vim.g.loaded_laguna then
  return
end
vim.g.loaded_laguna = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify(
    'laguna: Neovim 0.11 or newer is needed; this is ' .. tostring(vim.version()),
    vim.log.levels.ERROR
  )
  return
end

for group, link in pairs({
  LagunaGhost = vim.fn.hlexists('ComplHint') == 1 and 'ComplHint' or 'Comment',
  LagunaThinking = 'Comment',
  LagunaNote = 'DiagnosticInfo',
  LagunaError = 'DiagnosticError',
  LagunaUsage = 'NonText',
}) do
  vim.api.nvim_set_hl(0, group, { default = true, link = link })
end

vim.api.nvim_create_user_command('Laguna', function(command)
  require('laguna.command').run(command)
end, {
  nargs = '*',
  range = true,
  desc = 'Laguna, the coding assistant',
  complete = function(lead, line)
    return require('laguna.command').complete(lead, line)
  end,
})

require('laguna.keys').define()

local group = vim.api.nvim_create_augroup('laguna', {})
vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = function(event)
    require('laguna.connection').attached(event.buf, event.data.client_id)
  end,
})
vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  callback = function(event)
    require('laguna.connection').detached(event.buf, event.data.client_id)
  end,
})
