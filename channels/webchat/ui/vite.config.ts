import react from '@vitejs/plugin-react'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { compress } from './compress.ts'
import { theme } from './theme.ts'

// PARLEY names a running gateway for `npm run dev`: its API is passed through, with the Host and Origin that it expects.
const gateway = process.env.PARLEY ?? 'http://127.0.0.1:8420'

export default defineConfig({
  plugins: [react(), theme(), compress()],
  resolve: {
    alias: {
      // It writes a <style> element at run time, which the content security policy forbids. What it would say stands in ui/base.css.
      'react-style-singleton': fileURLToPath(new URL('./src/ui/no-style.ts', import.meta.url)),
    },
  },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // data: addresses are not in the policy
    modulePreload: { polyfill: false }, // it would be an inline script
    chunkSizeWarningLimit: 800,
    rolldownOptions: { checks: { pluginTimings: false } }, // brotli takes its time
  },
  server: {
    proxy: {
      '/v1': { target: gateway, changeOrigin: true, ws: true, headers: { origin: gateway } },
    },
  },
  test: { environment: 'jsdom', include: ['src/**/*.test.{ts,tsx}'], testTimeout: 120_000 },
})
