import * as Main from 'resource:///org/gnome/shell/ui/main.js';
import {Extension} from 'resource:///org/gnome/shell/extensions/extension.js';
import './core.js';

export default class Windows extends Extension {
    enable() {
        this._end = globalThis.maiAgentWindows.start(Main);
    }

    disable() {
        this._end();
    }
}
