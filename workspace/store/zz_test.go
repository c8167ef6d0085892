package store_test
import ("testing";"os";"fmt";"time";"parley/workspace/store")
func TestZZ(t *testing.T){
 dir:=os.Getenv("ZZ"); if dir==""{t.Skip()}
 os.RemoveAll(dir)
 s,err:=store.Open(t.Context(),store.Options{Dir:dir,Now:time.Now,BallastBytes:-1}); if err!=nil{t.Fatal(err)}
 work:=make(chan int); done:=make(chan error,100)
 for c:=range 100{ go func(){ for i:=range work{ if err:=plain(s,c,i);err!=nil{panic(err)}}; done<-nil}()}
 for i:=range 8000{work<-i}; close(work); for range 100{<-done}
 fmt.Println(s.Counts())
 for _,f:=range []string{"parley.db","parley.db-wal"}{ b,_:=os.ReadFile(dir+"/"+f); os.WriteFile("/tmp/wal/"+f,b,0600)}
 s.Close()
}
