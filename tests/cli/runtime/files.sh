# The root is read-only, writable directories are bounded, a device is a device.
need runc crun
for runtime in runc crun; do
    "$PX" exec --runtime $runtime --tmpfs /scratch:size=64k --tmpfs /plain:noexec -c '
        for place in / /etc /usr /dev /.px /proc/sys/kernel; do
            (echo x >$place/px-test) 2>/dev/null && echo "can write $place"
        done
        head -c 1m /dev/zero >/scratch/f 2>/dev/null || echo full
        stat -c %s /scratch/f
        cp /bin/true /plain/true; /plain/true 2>/dev/null || echo noexec
        cp /bin/true /tmp/true; /tmp/true && echo exec
        echo x >/dev/null && head -c 3 /dev/zero | wc -c
        stat -c "%a %U" /tmp "$HOME"
        cat /proc/kallsyms /proc/keys | wc -c
        cat /proc/self/mountinfo | grep -c " /bundle" || true'
done
