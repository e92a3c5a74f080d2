# The first program inside the tree (`enter` starts it): a desktop without a screen, and then what is to be run on it.
#   session.sh KIND COMMAND...         (the kinds: see below)
# Nothing here is asked of the person: this desktop has none. On gnome the record is written that the portal writes when
# somebody allows something in its dialog, and the token is where the program keeps it; on kde no portal can be had, as it
# captures nothing without a graphics card.
set -eu
kind=$1
shift
export HOME=/home/somebody USER=somebody XDG_RUNTIME_DIR=/run/user/1000 XDG_SESSION_TYPE=wayland LIBGL_ALWAYS_SOFTWARE=1 LANG=C.UTF-8
export PATH=/opt/venv/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/mai WAYLAND_DISPLAY=wayland-0
mkdir -p "$HOME" && chmod 700 "$XDG_RUNTIME_DIR"
cd "$HOME"

wait_for() { # wait_for COMMAND...: for 30 seconds
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
  echo "never came up: $*" >&2
  return 1
}

# One bus plays the system's too, as an empty one: gnome-shell cannot do without.
export DBUS_SESSION_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus DBUS_SYSTEM_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus
dbus-daemon --session --fork --nopidfile --address="$DBUS_SESSION_BUS_ADDRESS"

start_pipewire() {
  pipewire >pipewire.log 2>&1 &
  wait_for test -S "$XDG_RUNTIME_DIR/pipewire-0"
  wireplumber >wireplumber.log 2>&1 &
}

# shows COMMAND...: a compositor that chooses the name of its socket itself
shows() {
  unset WAYLAND_DISPLAY
  export WLR_BACKENDS=headless WLR_RENDERER=pixman WLR_LIBINPUT_NO_DEVICES=1
  "$@" >compositor.log 2>&1 &
  wait_for sockets
  WAYLAND_DISPLAY=$(sockets)
  export WAYLAND_DISPLAY
}
sockets() { (cd "$XDG_RUNTIME_DIR" && ls -d wayland-? 2>/dev/null); }
resize() { wait_for wlr-randr --output HEADLESS-1 --custom-mode "${SIZE:-1280x800}"; }

# MAI_TEST_LACKS tells the conformance suite what a compositor does not offer: there it asks for that to be said.
case $kind in
sway)
  shows sway -c /dev/null
  SWAYSOCK=$(ls "$XDG_RUNTIME_DIR"/sway-ipc.*.sock)
  export SWAYSOCK
  resize
  ;;
labwc | phoc)
  shows "$kind"
  resize
  export MAI_TEST_LACKS="windows stop_key"
  ;;
cage)
  shows cage -- sleep infinity
  resize
  export MAI_TEST_LACKS="windows names stop_key clipboard"
  ;;
mir)
  Xvfb :5 -screen 0 "${SIZE:-1280x800}x24" >xvfb.log 2>&1 &
  wait_for test -S /tmp/.X11-unix/X5
  # Its own display that is nowhere tells no window when to draw.
  DISPLAY=:5 shows miral-shell --platform-display-libs=mir:x11 --x11-output="${SIZE:-1280x800}" --add-wayland-extensions=all
  export MAI_TEST_LACKS="windows stop_key takeover clipboard"
  ;;
wlmaker) shows wlmaker ;;
weston) shows weston --backend=headless --renderer=pixman --width=1280 --height=800 --idle-time=0 ;;
gnome)
  start_pipewire
  export XDG_CURRENT_DESKTOP=GNOME
  gsettings set org.gnome.desktop.interface toolkit-accessibility true
  gsettings set org.gnome.desktop.interface enable-animations false
  gsettings set org.gnome.desktop.notifications show-banners false
  gsettings set org.gnome.shell welcome-dialog-last-shown-version 99999
  extension=$HOME/.local/share/gnome-shell/extensions/windows-45@mai-agent
  mkdir -p "$extension"
  cp /mai/configs/gnome-extension/core.js "$extension"
  cp /mai/configs/gnome-extension/extension-45.js "$extension/extension.js"
  cp /mai/configs/gnome-extension/metadata-45.json "$extension/metadata.json"
  gsettings set org.gnome.shell enabled-extensions "['windows-45@mai-agent']"
  # The portal's own programs are started by the bus, with what this says.
  dbus-update-activation-environment WAYLAND_DISPLAY XDG_CURRENT_DESKTOP XDG_SESSION_TYPE LIBGL_ALWAYS_SOFTWARE >/dev/null
  gnome-shell --headless --wayland --no-x11 --wayland-display wayland-0 --virtual-monitor "${SIZE:-1280x800}" >shell.log 2>&1 &
  of_shell() { gdbus call --session -d org.gnome.Shell -o /org/gnome/Shell -m "org.freedesktop.DBus.Properties.$1" org.gnome.Shell OverviewActive "${@:2}"; }
  overview_is() { of_shell Get | grep -q "$1"; }
  wait_for overview_is true
  of_shell Set '<false>' >/dev/null
  wait_for overview_is false
  token=$(cat /proc/sys/kernel/random/uuid)
  export MAI_AGENT_STATE=$HOME/state
  mkdir -p "$MAI_AGENT_STATE"
  echo "{\"restore_token\": \"$token\"}" >"$MAI_AGENT_STATE/portal.json"
  store=org.freedesktop.impl.portal.PermissionStore now=$(date +%s)000000
  # devices 3: keyboard and pointer; then the clipboard; then one monitor, by the name that a virtual one has
  gdbus call --session -d $store -o /org/freedesktop/impl/portal/PermissionStore -m $store.Set remote-desktop true "$token" \
    "{'': ['yes']}" "<('GNOME', uint32 1, <(int64 0, int64 $now, uint32 3, true, [(uint32 0, uint32 1, <'MetaVendor:MetaVirtualMonitor:0x00'>)])>)>" >/dev/null
  ;;
kde)
  start_pipewire
  # Not KDE_FULL_SESSION: KWin 6.3 falls over it where there is no Plasma.
  export XDG_CURRENT_DESKTOP=KDE
  dbus-update-activation-environment WAYLAND_DISPLAY XDG_CURRENT_DESKTOP XDG_SESSION_TYPE LIBGL_ALWAYS_SOFTWARE >/dev/null
  kwin_wayland --virtual --width 1280 --height 800 --no-lockscreen --socket wayland-0 >kwin.log 2>&1 &
  wait_for test -S "$XDG_RUNTIME_DIR/wayland-0"
  wait_for gdbus call --session -d org.kde.KWin -o /Scripting -m org.freedesktop.DBus.Peer.Ping
  ;;
*)
  echo "there is no such desktop: $kind" >&2
  exit 2
  ;;
esac
status=0
"$@" || status=$?
if [ "$status" -ne 0 ] && [ -n "${LOGS:-}" ]; then tail -n 20 ./*.log >&2; fi
exit "$status"
