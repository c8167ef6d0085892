import { RouterProvider } from '@tanstack/react-router'
import { router } from './router'
import { Away, SignIn } from './shell/signin'
import { signed } from './store/app'
import { useAtom } from './store/atom'
import { Tips } from './ui/tip'

// App is the page of somebody who is signed in, or the way in.
export function App() {
  const s = useAtom(signed)
  switch (s.state) {
    case 'asking': return null
    case 'unreachable': return <Tips><Away /></Tips>
    case 'out': return <Tips><SignIn /></Tips>
    case 'in': return <Tips><RouterProvider router={router} /></Tips>
  }
}
