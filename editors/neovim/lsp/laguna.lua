-- The language server's configuration; change any of it with vim.lsp.config('laguna', { ... }).
return {
  cmd = { 'laguna-daemon', 'lsp' },
  root_markers = { '.git' },
  settings = { laguna = vim.empty_dict() },
  -- Neovim 0.11 does not say by itself that it shows ghost text; this plugin does.
  capabilities = { textDocument = { inlineCompletion = { dynamicRegistration = false } } },
  handlers = {
    ['$/progress'] = function(...)
      return require('laguna.connection').progress(...)
    end,
    ['laguna/didChangeStatus'] = function(...)
      return require('laguna.status').changed(...)
    end,
  },
  on_exit = function(...)
    require('laguna.connection').ended(...)
  end,
}
