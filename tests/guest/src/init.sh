#!/bin/sh
# The first process of the test machine. Mounts what a Debian system has, runs the jobs
# one after the other, and sends what they print and leave in /out through three virtio
# ports, each part followed by the host's token and the job's exit status. Then it waits
# for the host to switch the machine off.
# The root is a tmpfs, so that /tmp needs none, and may hold copies of the host's /tmp.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm /out.d
chmod 1777 /tmp /var/tmp
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
for module in /guest/modules/*.ko; do
  [ ! -e "$module" ] || insmod "$module"
done
ip link set lo up
hostname guest
. /guest/settings
for wait in $(seq 500); do
  [ ! -e /dev/vport0p3 ] || break
  sleep 0.01
done
if [ ! -e /dev/vport0p3 ]; then
  echo 'init: the virtio ports do not come up'
  poweroff -f
fi

# Pipes in between: a port can be opened only once, so /dev/stdout would not work on one.
mkfifo /run/stdout /run/stderr
cat /run/stdout > /dev/vport0p1 &
cat /run/stderr > /dev/vport0p2 &
exec 3> /run/stdout 4> /run/stderr

mkdir -p "$FOLDER"
job=0
while [ -e /guest/$job.sh ]; do
  mkdir -m 1777 /out.d/$job
  ln -sfn /out.d/$job /out
  cd "$FOLDER"
  # In a shell of its own, or the word with which this one reports a signal would be
  # among what the job printed.
  ( exec sh /guest/$job.sh < /dev/null >&3 2>&4 3>&- 4>&- )
  status=$?
  printf '%s %s\n' $TOKEN $status >&3
  printf '%s %s\n' $TOKEN $status >&4
  job=$((job + 1))
done
cd /out.d
{
  find . -type f | cpio -o -H newc 2> /dev/null
  printf '%s 0\n' $TOKEN
} > /dev/vport0p3
while true; do sleep 1000; done
