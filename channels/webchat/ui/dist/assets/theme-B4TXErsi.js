var t;try{t=localStorage.getItem('parley.theme')}catch(e){}if(t==='light'||t==='dark')document.documentElement.dataset.theme=t
