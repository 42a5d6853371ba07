-- The whole configuration of the editor under test: what a user would write, and no files beside it.
vim.opt.swapfile = false
vim.opt.runtimepath:prepend(vim.env.LAGUNA_TEST_PLUGIN)
vim.lsp.config('laguna', { cmd = vim.json.decode(vim.env.LAGUNA_TEST_COMMAND) })
vim.lsp.enable('laguna')
vim.o.statusline = "%f %{v:lua.require'laguna'.status()}"
-- A colour of its own, so that a screen tells ghost text from all other text.
vim.api.nvim_set_hl(0, 'LagunaGhost', { fg = '#808080' })
vim.api.nvim_set_hl(0, 'ComplHint', { fg = '#808080' })
