/* exported init */
const Me = imports.misc.extensionUtils.getCurrentExtension();
const Main = imports.ui.main;

class Windows {
    enable() {
        void Me.imports.core;
        this._end = globalThis.maiAgentWindows.start(Main);
    }

    disable() {
        this._end();
    }
}

function init() {
    return new Windows();
}
