# A terminal of the box's own devpts, and its own foreground; the runtime is not between.
need runc crun
[ -x /usr/bin/python3 ] || skip "there is no /usr/bin/python3 here"
for runtime in runc crun; do
    /usr/bin/python3 - "$PX" $runtime <<'P'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "exec", "-t", "--runtime", sys.argv[2], "--", "/bin/bash", "-c",
                           "tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal; set -- $(cat /proc/$$/stat); [ $5 = $8 ] && echo foreground; exit 5"])
text = b""
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    text += data
print(text.decode().replace("\r\n", "\n"), end="")
print("exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
done
