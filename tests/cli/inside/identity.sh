"$PX" exec -c 'id -u; id -g; id -un; id -gn; id -G; hostname; cat /etc/hostname; pwd; echo $HOME; whoami'
