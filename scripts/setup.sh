# Sourced by scripts/mai-agent and scripts/test: sets up what they need, and is quick when it is there already.
# Says in one sentence what is missing where it may not install it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/.venv"

say() { printf 'mai-agent: %s\n' "$*" >&2; }

# need_packages PACKAGE...: Debian packages, installed where we may.
need_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    return 0 # not a Debian: the program itself says which of its programs are missing
  fi
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "these system packages are missing; install them with: sudo apt-get install --no-install-recommends ${missing[*]}"
      return 0
    fi
  fi
  say "installing system packages (once): ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    say "the system packages could not be installed; the lines above say why"
    return 1
  fi
  rm -f "$log"
}

# find_python: the first Python that is new enough.
find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return 0
    fi
  done
  say "Python 3.11 or newer is needed and was not found"
  return 1
}

# need_venv_module: the part of Python that makes environments, which Debian keeps in a package of its own.
need_venv_module() {
  local python
  python=$(find_python) || return 1
  "$python" -c 'import ensurepip, venv' 2>/dev/null || need_packages python3-venv
}

# need_environment LOCK: a virtual environment that holds exactly the locked versions, and this checkout.
need_environment() {
  local lock="$root/$1" stamp="$venv/.installed" wanted python
  wanted=$(cat "$root/pyproject.toml" "$lock" | sha256sum | cut -d' ' -f1)
  if [ -f "$stamp" ] && grep -qx "$1 $wanted" "$stamp"; then
    return 0
  fi
  trap 'say "interrupted; the next start goes on with the set-up"; exit 130' INT
  need_venv_module || return 1
  python=$(find_python) || return 1
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then # none, or one that was interrupted while it was made
    say "making an environment in .venv (once)"
    "$python" -m venv "$venv" 2>/dev/null ||
      { say "the environment could not be made; is the venv module installed?"; return 1; }
  fi
  say "installing the locked dependencies of $1 (once)"
  local log
  log=$(mktemp)
  # The lock names everything. With its dependencies looked up again, pip 23 takes a newer release of a package that is asked for
  # with an extra, and then refuses it because the lock has no hash of it.
  if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --require-hashes --no-deps -r "$lock" \
    >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    say "the dependencies could not be installed; the lines above say why"
    return 1
  fi
  rm -f "$log"
  # The checkout itself, as a path file: nothing is built, and edits count at once.
  "$venv/bin/python" - "$root" <<'PYTHON' || return 1
import pathlib, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
site.joinpath("mai-agent-checkout.pth").write_text(sys.argv[1] + "\n")
for name, room in (("mai-agent", "agent"), ("mai-server", "serverctl")):
    command = pathlib.Path(sysconfig.get_path("scripts"), name)
    command.write_text(f"#!{sys.executable}\nimport sys\nfrom {room}.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
PYTHON
  # Where Python may not write bytecode by itself, every start would compile all of it again.
  "$venv/bin/python" -m compileall -q "$root/foundation" "$root/agent" "$root/serverctl" "$root/mai_agent" >/dev/null || true
  # The runtime lock is part of the development lock: having one is having both.
  { printf '%s %s\n' "$1" "$wanted"
    if [ "$1" = requirements-dev.lock ]; then
      printf 'requirements.lock %s\n' "$(cat "$root/pyproject.toml" "$root/requirements.lock" | sha256sum | cut -d' ' -f1)"
    fi
  } >"$stamp"
  trap - INT
}

# need_wayland ARGUMENTS: what seeing and touching GNOME and KDE on Wayland takes, in such a session or for a sandbox of it;
# after need_environment. Without it the rest works: GStreamer can give the frames too.
need_wayland() {
  case " $1 " in *"--sandbox-session gnome-shell "* | *"--sandbox-session=gnome-shell "*) ;; *)
    [ -n "${WAYLAND_DISPLAY:-}" ] || return 0
    case "${XDG_CURRENT_DESKTOP:-}" in
    *GNOME*) need_packages pipewire xdg-desktop-portal xdg-desktop-portal-gnome ;;
    *KDE*) need_packages pipewire xdg-desktop-portal xdg-desktop-portal-kde ;;
    *) return 0 ;;
    esac || return 1
    ;;
  esac
  "$venv/bin/python" -c 'import libei, pipewire_capture' 2>/dev/null && return 0
  say "installing what GNOME and KDE on Wayland need (once)"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --require-hashes --no-deps \
    -r "$root/requirements-wayland.lock" >/dev/null 2>&1 </dev/null ||
    say "that could not be installed (it needs glibc 2.34 or newer, on x86-64 or ARM): GStreamer is used where it is there"
}

# What a sandbox is made of, and applications to use in it (what for: configs/sandbox.toml and configs/sandbox).
sandbox_packages=(bubblewrap xvfb xclip dbus-daemon dbus-x11 xfce4-settings xfwm4 xfce4-panel xfdesktop4 xfconf
  adwaita-icon-theme gnome-themes-extra librsvg2-common gsettings-desktop-schemas libglib2.0-bin fonts-dejavu-core
  dconf-cli dconf-gsettings-backend dconf-service at-spi2-core xdg-user-dirs
  xfce4-terminal mousepad thunar galculator)
# session_packages KIND: what the other kinds of sandboxes need beside these.
session_packages() {
  case "$1" in
  gnome) echo gnome-settings-daemon gnome-control-center nautilus gnome-text-editor gnome-calculator ;;
  kde) echo kwrite kcalc systemsettings ;;
  mate) echo mate-settings-daemon marco mate-panel caja mate-control-center pluma mate-calc ;;
  sway) echo sway swaybg foot ;;
  gnome-shell)
    session_packages gnome
    echo gnome-shell pipewire wireplumber gstreamer1.0-pipewire gstreamer1.0-plugins-base gir1.2-gst-plugins-base-1.0 python3-gi
    ;;
  cinnamon) echo cinnamon-settings-daemon nemo cinnamon-control-center cinnamon-l10n ;;
  esac
}
# What the literal engine reads with.
reading_packages=(tesseract-ocr-eng)
# What the vLLM for processors is linked with (configs/vllm/builds.toml).
vllm_cpu_packages=(libnuma1)

# wanted_packages ARGUMENTS: what a run with these takes, a line each.
wanted_packages() {
  local kind
  printf '%s\n' "${reading_packages[@]}" xclip dconf-cli
  case " $1 " in *" --sandbox "*) printf '%s\n' "${sandbox_packages[@]}" ;; esac
  for kind in gnome kde mate cinnamon sway gnome-shell; do
    case " $1 " in *" --sandbox-session $kind "* | *" --sandbox-session=$kind "*) session_packages "$kind" | tr ' ' '\n' ;; esac
  done
  case " $1 " in *" --sandbox-locale"*) echo locales ;; esac
  case " $1 " in *" --try "*) printf '%s\n' python3-gi gir1.2-gtk-3.0 ;; esac
}
