# Every mount of the box says nosuid, and nodev but for the device nodes themselves.
"$PX" exec -c 'grep -v nosuid /proc/self/mountinfo; awk "\$5 !~ /^\/dev/ && \$6 !~ /nodev/ && \$0 !~ /proc/" /proc/self/mountinfo'
