package cell

import (
	"reflect"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestKernelsNumbersAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]int64{
		"open_tree": {sysOpenTree, unix.SYS_OPEN_TREE}, "move_mount": {sysMoveMount, unix.SYS_MOVE_MOUNT}, "fsopen": {sysFsopen, unix.SYS_FSOPEN},
		"fsconfig": {sysFsconfig, unix.SYS_FSCONFIG}, "fsmount": {sysFsmount, unix.SYS_FSMOUNT}, "pidfd_open": {sysPidfdOpen, unix.SYS_PIDFD_OPEN},
		"close_range": {sysCloseRange, unix.SYS_CLOSE_RANGE}, "openat2": {sysOpenat2, unix.SYS_OPENAT2}, "mount_setattr": {sysMountSetattr, unix.SYS_MOUNT_SETATTR},
		"landlock_create_ruleset": {sysLandlockCreateRules, unix.SYS_LANDLOCK_CREATE_RULESET}, "landlock_add_rule": {sysLandlockAddRule, unix.SYS_LANDLOCK_ADD_RULE},
		"landlock_restrict_self": {sysLandlockRestrictSelf, unix.SYS_LANDLOCK_RESTRICT_SELF}, "seccomp": {sysSeccomp, unix.SYS_SECCOMP},
		"AT_FDCWD": {atFDCWD, unix.AT_FDCWD}, "AT_EMPTY_PATH": {atEmptyPath, unix.AT_EMPTY_PATH}, "AT_RECURSIVE": {atRecursive, unix.AT_RECURSIVE}, "O_PATH": {oPath, unix.O_PATH},
		"OPEN_TREE_CLONE": {openTreeClone, unix.OPEN_TREE_CLONE}, "OPEN_TREE_CLOEXEC": {openTreeCloexec, unix.OPEN_TREE_CLOEXEC}, "MOVE_MOUNT_F_EMPTY_PATH": {moveMountEmpty, unix.MOVE_MOUNT_F_EMPTY_PATH},
		"FSOPEN_CLOEXEC": {fsopenCloexec, unix.FSOPEN_CLOEXEC}, "FSMOUNT_CLOEXEC": {fsmountCloexec, unix.FSMOUNT_CLOEXEC}, "FSCONFIG_SET_STRING": {fsconfigSetString, unix.FSCONFIG_SET_STRING},
		"FSCONFIG_CMD_CREATE": {fsconfigCreate, unix.FSCONFIG_CMD_CREATE}, "RESOLVE_NO_MAGICLINKS": {resolveNoMagic, unix.RESOLVE_NO_MAGICLINKS}, "RESOLVE_NO_SYMLINKS": {resolveNoSymlinks, unix.RESOLVE_NO_SYMLINKS},
		"RDONLY": {mountReadOnly, unix.MOUNT_ATTR_RDONLY}, "NOSUID": {mountNoSuid, unix.MOUNT_ATTR_NOSUID}, "NODEV": {mountNoDev, unix.MOUNT_ATTR_NODEV}, "NOEXEC": {mountNoExec, unix.MOUNT_ATTR_NOEXEC},
		"PR_SET_DUMPABLE": {prSetDumpable, unix.PR_SET_DUMPABLE}, "PR_CAPBSET_DROP": {prCapBsetDrop, unix.PR_CAPBSET_DROP}, "PR_SET_SECUREBITS": {prSetSecurebits, unix.PR_SET_SECUREBITS},
		"PR_SET_NO_NEW_PRIVS": {prNoNewPrivs, unix.PR_SET_NO_NEW_PRIVS}, "PR_CAP_AMBIENT": {prCapAmbient, unix.PR_CAP_AMBIENT}, "PR_CAP_AMBIENT_CLEAR_ALL": {prAmbientClear, unix.PR_CAP_AMBIENT_CLEAR_ALL},
		"RLIMIT_NPROC": {rlimitNproc, unix.RLIMIT_NPROC}, "capability version": {capVersion3, unix.LINUX_CAPABILITY_VERSION_3}, "SECCOMP_SET_MODE_FILTER": {seccompFilter, unix.SECCOMP_SET_MODE_FILTER},
		"TSYNC": {seccompTsync, unix.SECCOMP_FILTER_FLAG_TSYNC}, "POLLIN": {pollIn, unix.POLLIN}, "POLLRDHUP": {pollRdhup, unix.POLLRDHUP},
		"ruleset version": {landlockVersion, unix.LANDLOCK_CREATE_RULESET_VERSION}, "path beneath": {landlockBeneath, unix.LANDLOCK_RULE_PATH_BENEATH},
		"abstract sockets": {scopeAbstract, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}, "signals": {scopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		"execute": {fsExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE}, "write": {fsWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE}, "read": {fsReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE},
		"list": {fsReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR}, "rmdir": {fsRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR}, "rm": {fsRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		"char": {fsMakeChar, unix.LANDLOCK_ACCESS_FS_MAKE_CHAR}, "dir": {fsMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR}, "file": {fsMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"sock": {fsMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK}, "fifo": {fsMakeFifo, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO}, "block": {fsMakeBlock, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK},
		"link": {fsMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM}, "refer": {fsRefer, unix.LANDLOCK_ACCESS_FS_REFER}, "truncate": {fsTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, "ioctl": {fsIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		"struct mount_attr": {int64(unsafe.Sizeof(mountAttr{})), int64(unsafe.Sizeof(unix.MountAttr{}))}, "struct open_how": {int64(unsafe.Sizeof(openHow{})), int64(unsafe.Sizeof(unix.OpenHow{}))},
		"capability header": {int64(unsafe.Sizeof(capHeader{})), int64(unsafe.Sizeof(unix.CapUserHeader{}))}, "capability data": {int64(unsafe.Sizeof(capData{})), int64(unsafe.Sizeof(unix.CapUserData{}))},
		"struct ifreq": {int64(unsafe.Sizeof(ifreq{})), 40},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x here and %#x there", name, pair[0], pair[1])
		}
	}
}

// rooms draws any spec.
func rooms() *rapid.Generator[*Spec] {
	return rapid.Custom(func(t *rapid.T) *Spec {
		texts := rapid.SliceOfN(rapid.String(), 1, 5)
		return &Spec{
			Covers: texts.Draw(t, "covers"), Tmp: rapid.Int64().Draw(t, "tmp"), Shm: rapid.Int64().Draw(t, "shm"), Argv: texts.Draw(t, "argv"),
			Dir: rapid.String().Draw(t, "dir"), Env: texts.Draw(t, "env"), Processes: rapid.Int().Draw(t, "processes"), ProxyPort: rapid.Int().Draw(t, "port"),
			Mounts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Mount {
				return Mount{rapid.String().Draw(t, "host"), rapid.Int().Draw(t, "fd"), rapid.String().Draw(t, "as"), rapid.Bool().Draw(t, "rw"), rapid.Bool().Draw(t, "file")}
			}), 1, 4).Draw(t, "mounts"),
			Pins: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Pin {
				return Pin{rapid.String().Draw(t, "at"), rapid.Uint64().Draw(t, "dev"), rapid.Uint64().Draw(t, "ino")}
			}), 1, 4).Draw(t, "pins"),
			Rlimits: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rlimit {
				return Rlimit{rapid.Int().Draw(t, "resource"), rapid.Uint64().Draw(t, "value")}
			}), 1, 4).Draw(t, "rlimits"),
		}
	})
}

func TestWhatIsSentArrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &Walls{UID: rapid.Int().Draw(t, "uid"), Nice: rapid.Int().Draw(t, "nice"), Filter: rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(t, "filter")}
		l.Weak = Weaken(Weakness(rapid.Uint64Max(uint64(allWeaknesses)).Draw(t, "weak")))
		for _, m := range []struct{ sent, got fielded }{{l, &Walls{}}, {rooms().Draw(t, "spec"), &Spec{}}} {
			msg := message('x', m.sent)
			if err := parse(msg[5:], m.got); err != nil || !reflect.DeepEqual(m.got, m.sent) {
				t.Fatalf("%v\nsent %+v\ngot  %+v", err, m.sent, m.got)
			}
			cut := rapid.IntRange(5, len(msg)-1).Draw(t, "cut")
			if err := parse(msg[5:cut], m.got); err == nil {
				t.Fatalf("%d of %d bytes were taken for all", cut, len(msg))
			}
		}
	})
}

func TestEveryFieldIsOnTheWire(t *testing.T) {
	t.Parallel()
	for _, empty := range []fielded{&Walls{}, &Spec{}} {
		kind := reflect.TypeOf(empty).Elem()
		for i := range kind.NumField() { // a field that is not on the wire changes nothing there
			one := reflect.New(kind)
			f := one.Elem().Field(i)
			switch f.Kind() {
			case reflect.Int, reflect.Int64:
				f.SetInt(1)
			case reflect.String:
				f.SetString("x")
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			default:
				continue
			}
			if reflect.DeepEqual(message('x', one.Interface().(fielded)), message('x', empty)) {
				t.Errorf("%s is not on the wire", kind.Field(i).Name)
			}
		}
	}
}

func TestSwitchesAreOnTheWireOnlyWhereTheyAreBuilt(t *testing.T) {
	t.Parallel()
	w := Weaken(allWeaknesses)
	all, none := (&Walls{Weak: w}).Message(), (&Walls{}).Message()
	if CanWeaken {
		if !w.Has(KeepFDs) || !w.Has(SkipProbe) || w == (Switches{}) || reflect.DeepEqual(all, none) {
			t.Errorf("a launcher cannot be broken: %+v", w)
		}
		return
	}
	if size := unsafe.Sizeof(w); size != 0 || w.Has(allWeaknesses) || !reflect.DeepEqual(all, none) {
		t.Errorf("switches of %d bytes: %+v", size, w)
	}
}

func FuzzSpec(f *testing.F) {
	s := Spec{Argv: []string{"true"}, Mounts: []Mount{{Host: "/", As: "/work"}}}
	f.Add(s.Message()[5:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Spec
		if err := parse(b, &s); err == nil && len(s.Message()) != len(b)+5 {
			t.Errorf("%d bytes became %d", len(b), len(s.Message()))
		}
	})
}
