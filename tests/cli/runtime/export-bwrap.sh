# The same questions to a box of px and to bubblewrap with the exported policy: the same answers.
need bwrap
as_user
mkdir -p ro rw && echo r >ro/f && echo hidden >hidden
cat >ask.sh <<'ASK'
id -u; id -un; pwd; hostname; ls -A /; ls -A /etc; ls /workspace; cat ro/f; cat /proc/sys/kernel/hostname
echo x >rw/new && echo wrote
for place in ro/x /etc/x /usr/x /x /proc/sys/kernel/hostname /sys/x; do (echo x >$place) 2>/dev/null && echo "wrote $place"; done
(echo x >/tmp/x) && echo scratch
cat "$HIDDEN" 2>/dev/null && echo "read it"
env | sort | grep -v ^HIDDEN
unshare -U true 2>/dev/null && echo namespace
grep -E '^(Seccomp|NoNewPrivs|CapEff|CapBnd):' /proc/self/status
cat /proc/keys /proc/kallsyms 2>/dev/null | head -n 1
grep -v lo: /proc/net/dev | tail -n +3
python3 -c 'import socket; socket.socket(40, 1)' 2>&1 | tail -n 1
python3 - <<'PYTHON'
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
calls = {"keyctl": 250, "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "userfaultfd": 323, "mount": 165, "umount2": 166, "chroot": 161,
         "pivot_root": 155, "ptrace": 101, "setns": 308, "init_module": 175, "kexec_load": 246, "swapon": 167, "reboot": 169, "open_by_handle_at": 304,
         "process_vm_readv": 310, "add_key": 248, "settimeofday": 164, "sethostname": 170, "open_tree": 428, "fsopen": 430, "quotactl": 179}
for name, number in calls.items():
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    print(name, errno.errorcode.get(ctypes.get_errno(), 0))
for path, mode in (("rw/dev", 0o20666), ("rw/pipe", 0o10666)):
    try:
        os.mknod(path, mode, os.makedev(1, 3)); print("made", path)
    except OSError as e:
        print(path, e.strerror)
for act in (lambda: os.chmod("rw/new", 0o4755), lambda: os.setuid(0), lambda: os.chown("rw/new", 0, 0), lambda: os.link("ro/f", "rw/hard"),
            lambda: os.symlink(os.environ["HIDDEN"], "rw/link") or open("rw/link").read(), lambda: open("/proc/1/root" + os.environ["HIDDEN"]).read(),
            lambda: socket.create_connection(("198.51.100.1", 80), 5), lambda: os.listdir("/home/sandbox/..")):
    try:
        print("could", act())
    except OSError as e:
        print(e.strerror)
print(len([name for name in os.listdir("/proc") if name.isdigit()]) < 6)
PYTHON
rm -f rw/new rw/pipe rw/link
ASK
policy=(--preset worker --timeout 100s -v "$PWD/ro:/workspace/ro:ro" -v "$PWD/rw:/workspace/rw" -w /workspace -e "HIDDEN=$PWD/hidden")
"$PX" exec "${policy[@]}" -- sh -c "$(cat ask.sh)" >ours
"$PX" policy export --to bwrap "${policy[@]}" -- sh -c "$(cat ask.sh)" >run.sh
bash run.sh >theirs
diff ours theirs
grep -E '^(wrote|scratch|1000|namespace|read it|made|could [^[])' ours
sed -n 2,4p run.sh
