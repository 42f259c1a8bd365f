# What there is and what holds it; names choose by how they begin.
"$PX" sandbox verify --list --only etc_readonly,D1_
"$PX" --json sandbox verify --list --only etc_readonly,E7_keyring
"$PX" sandbox verify --list | awk -F '\t' 'NF != 3 { bad++ } END { print (NR > 180 ? "many" : NR), bad + 0 }'
