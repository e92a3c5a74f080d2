// Tells mai-agent which windows are where, and when its stop key is pressed: GNOME's shell tells nobody else. `start` is handed the shell's own modules,
// which versions before 45 and since find by other ways; see extension-43.js and extension-45.js.
(function () {
    const {Gio, GLib, Meta, Shell} = imports.gi;
    const INTERFACE = `<node><interface name="org.mai_agent.Windows">
        <method name="Tell"><arg type="s" direction="out"/></method>
        <method name="Activate"><arg type="u" direction="in"/><arg type="b" direction="out"/></method>
        <method name="Grab"><arg type="s" direction="in"/><arg type="u" direction="out"/></method>
        <method name="Release"><arg type="u" direction="in"/></method>
        <signal name="Pressed"><arg type="u"/></signal>
    </interface></node>`;
    const PATH = '/org/mai_agent/Windows';
    const Kind = Meta.WindowType;
    const DIALOGS = [Kind.DIALOG, Kind.MODAL_DIALOG];
    const HELPERS = [Kind.DROPDOWN_MENU, Kind.POPUP_MENU, Kind.COMBO, Kind.NOTIFICATION, Kind.DND, Kind.OVERRIDE_OTHER];

    const places = rect => [rect.x, rect.y, rect.width, rect.height];

    function told(window) {
        const type = window.get_window_type();
        const passing = type === Kind.TOOLTIP;
        const owner = window.get_transient_for();
        const buffer = window.get_buffer_rect();
        const here = window.located_on_workspace(global.workspace_manager.get_active_workspace());
        return {
            id: window.get_stable_sequence(), order: window.get_stable_sequence(), title: window.get_title() || '',
            app: window.get_wm_class() || '', pid: window.get_pid(), box: places(window.get_frame_rect()),
            outer: places(window.get_frame_rect()), surface: [buffer.x, buffer.y],
            shown: here && !window.minimized, focused: window.has_focus(), dialog: DIALOGS.includes(type),
            helper: passing || HELPERS.includes(type) || window.is_override_redirect(), passing,
            owner: owner ? owner.get_stable_sequence() : null, backdrop: type === Kind.DESKTOP,
            kinds: type === Kind.DOCK ? ['DOCK'] : [],
        };
    }

    // What the shell draws itself lies over all windows: its bar, and whatever takes all input (menus of it, dialogs).
    function ofShell(id, title, box) {
        return {
            id, order: id, title, app: 'gnome-shell', pid: null, box, outer: box, surface: null, shown: true, focused: false,
            dialog: false, helper: false, passing: false, owner: null, backdrop: false, kinds: ['DOCK'],
        };
    }

    globalThis.maiAgentWindows = {
        start(Main) {
            const grabbed = new Map();  // chords by the shell's numbers, and the watch over whoever asked for each

            function release(action) {
                if (!grabbed.has(action))
                    return;
                Gio.bus_unwatch_name(grabbed.get(action));
                grabbed.delete(action);
                global.display.ungrab_accelerator(action);
            }

            const service = {
                GrabAsync([chord], invocation) {
                    const action = global.display.grab_accelerator(chord, Meta.KeyBindingFlags.NONE);
                    if (action !== Meta.KeyBindingAction.NONE) {
                        Main.wm.allowKeybinding(Meta.external_binding_name_for_action(action), Shell.ActionMode.ALL);
                        grabbed.set(action, Gio.bus_watch_name_on_connection(Gio.DBus.session, invocation.get_sender(),
                            Gio.BusNameWatcherFlags.NONE, null, () => release(action)));
                    }
                    invocation.return_value(new GLib.Variant('(u)', [action]));
                },
                Release: release,
                Tell() {
                    const windows = global.get_window_actors().map(actor => told(actor.get_meta_window()));
                    const panel = Main.layoutManager.panelBox;
                    if (panel.visible && !Main.layoutManager.primaryMonitor.inFullscreen)
                        windows.push(ofShell(0xfffffffe, '', [...panel.get_transformed_position(), panel.width, panel.height].map(Math.round)));
                    if (Main.overview.visible || Main.modalCount > 0)
                        windows.push(ofShell(0xffffffff, 'GNOME Shell', [0, 0, global.stage.width, global.stage.height]));
                    return JSON.stringify({windows, pointer: global.get_pointer().slice(0, 2)});
                },
                Activate(id) {
                    const all = global.get_window_actors().map(actor => actor.get_meta_window());
                    const found = all.find(window => window.get_stable_sequence() === id);
                    if (found)
                        Main.activateWindow(found);
                    return Boolean(found);
                },
            };
            const exported = Gio.DBusExportedObject.wrapJSObject(INTERFACE, service);
            exported.export(Gio.DBus.session, PATH);
            const listening = global.display.connect('accelerator-activated', (_, action) => {
                if (grabbed.has(action))
                    exported.emit_signal('Pressed', new GLib.Variant('(u)', [action]));
            });
            return () => {
                global.display.disconnect(listening);
                [...grabbed.keys()].forEach(release);
                exported.unexport();
            };
        },
    };
})();
