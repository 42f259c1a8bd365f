"$PX" exec --hostname build-7.example -c 'hostname; cat /etc/hostname; grep -c build-7.example /etc/hosts'
hostname | grep -c '^build-7.example$' || true
