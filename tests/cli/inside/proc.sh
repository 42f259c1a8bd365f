# What tells of the host reads as empty or not at all; what programs need is there.
"$PX" exec -c 'for f in kcore keys key-users kallsyms timer_list interrupts iomem cmdline config.gz modules partitions diskstats swaps consoles; do
    [ -z "$(head -c 1 /proc/$f 2>/dev/null | tr -d "\0")" ] || echo "$f can be read"
done
for f in sysrq-trigger sys/kernel/core_pattern sys/kernel/hostname sys/vm/drop_caches; do
    (echo x >/proc/$f) 2>/dev/null && echo "$f can be written"
done
for f in meminfo cpuinfo stat uptime loadavg version filesystems self/status; do [ -s /proc/$f ] || [ -n "$(cat /proc/$f)" ] || echo "no $f"; done
ls /sys | wc -l'
