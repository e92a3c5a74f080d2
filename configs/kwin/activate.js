// Brings a window to the front, whose number stands for WINDOW, and tells the program TO whether it was there.
(function () {
    const listed = workspace.windowList ? workspace.windowList() : workspace.clientList();
    const found = listed.find(one => String(one.internalId) === 'WINDOW');
    if (found && 'activeWindow' in workspace)
        workspace.activeWindow = found;
    else if (found)
        workspace.activeClient = found;
    callDBus('TO', '/org/mai_agent/Windows', 'org.mai_agent.Windows', 'Told', JSON.stringify(Boolean(found)));
})();
