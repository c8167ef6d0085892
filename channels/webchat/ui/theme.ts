import type { Plugin } from 'vite'

// What a chosen look is called, as in src/ui/theme.ts. It runs before anything is drawn, so that the skeleton of index.html has the
// right colours too. The policy of the page takes no script that stands in it: it is a file, with a hash as all of them.
const source = `var t;try{t=localStorage.getItem('parley.theme')}catch(e){}if(t==='light'||t==='dark')document.documentElement.dataset.theme=t\n`

export function theme(): Plugin {
  return {
    name: 'theme',
    apply: 'build',
    buildStart() { this.emitFile({ type: 'asset', name: 'theme.js', source }) },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle }) {
        const file = Object.values(bundle ?? {}).find(f => f.type === 'asset' && f.names.includes('theme.js'))
        if (!file) throw new Error('the script of the theme is not in the build')
        return [{ tag: 'script', attrs: { src: `/${file.fileName}` }, injectTo: 'head-prepend' }]
      },
    },
  }
}
