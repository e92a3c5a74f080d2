// Tells all windows once, the lowest first, to the program whose name on the bus stands for TO. KWin 5.27 and 6.
(function () {
    const places = rect => [rect.x, rect.y, rect.width, rect.height].map(Math.round);
    const listed = workspace.windowList ? workspace.windowList() : workspace.clientList();
    const stacked = workspace.stackingOrder || listed.slice().sort((one, other) => one.stackingOrder - other.stackingOrder);
    const order = listed.map(one => String(one.internalId));
    const here = one => one.onAllDesktops || !one.desktops || one.desktops.length === 0
        || one.desktops.some(desktop => desktop === workspace.currentDesktop) || one.desktop === workspace.currentDesktop;

    const windows = stacked.map(one => ({
        id: String(one.internalId), order: order.indexOf(String(one.internalId)), title: String(one.caption || ''),
        app: String(one.resourceClass || ''), pid: one.pid, box: places(one.clientGeometry || one.frameGeometry), outer: places(one.frameGeometry),
        surface: one.bufferGeometry ? places(one.bufferGeometry).slice(0, 2) : null, shown: !one.minimized && !one.hidden && here(one),
        focused: one.active, dialog: one.dialog || one.modal,
        helper: one.popupWindow || one.tooltip || one.dropdownMenu || one.popupMenu || one.comboBox || one.notification,
        passing: Boolean(one.tooltip), owner: one.transientFor ? String(one.transientFor.internalId) : null,
        backdrop: Boolean(one.desktopWindow), kinds: one.dock ? ['DOCK'] : [],
    }));
    const pointer = [workspace.cursorPos.x, workspace.cursorPos.y].map(Math.round);
    callDBus('TO', '/org/mai_agent/Windows', 'org.mai_agent.Windows', 'Told', JSON.stringify({windows, pointer}));
})();
