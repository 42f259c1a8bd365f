"$PX" exec --hostname tester -c 'cat /etc/passwd /etc/group /etc/hosts /etc/hostname; wc -c </etc/resolv.conf; getent hosts localhost | grep -c localhost'
