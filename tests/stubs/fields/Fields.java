// Fields of Swing: `java Fields.java STATE`. Commands come on standard input: the number of a reset, one a line.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.swing.*;
import javax.swing.event.DocumentEvent;
import javax.swing.event.DocumentListener;
import javax.swing.text.JTextComponent;

public class Fields {
  static final Map<String, JTextComponent> fields = new LinkedHashMap<>();
  static final String[] NAMES = {"entry", "password", "spin", "combo", "text"};
  static final String[] BEGIN = {
    "what stood there", "old secret", "42", "first choice", "the first line\nthe second line"
  };
  static String path;
  static int answered = 0;
  static String entered = "";

  static String quoted(String text) {
    StringBuilder told = new StringBuilder("\"");
    for (char one : text.toCharArray()) told.append(String.format("\\u%04x", (int) one));
    return told.append("\"").toString();
  }

  static void write() {
    StringBuilder told = new StringBuilder("{\"answered\": " + answered);
    for (var field : fields.entrySet())
      told.append(", \"" + field.getKey() + "\": " + quoted(field.getValue().getText()));
    told.append(", \"entered\": " + quoted(entered));
    try {
      Files.writeString(Path.of(path + ".new"), told.append("}").toString());
      Files.move(Path.of(path + ".new"), Path.of(path), StandardCopyOption.REPLACE_EXISTING);
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  static void reset() {
    entered = "";
    for (int i = 0; i < NAMES.length; i++) fields.get(NAMES[i]).setText(BEGIN[i]);
    write();
  }

  public static void main(String[] arguments) throws Exception {
    path = arguments[0];
    SwingUtilities.invokeAndWait(
        () -> {
          JFrame frame = new JFrame("Swing");
          frame.setUndecorated(true);
          frame.setLayout(null);
          JSpinner spin = new JSpinner(new SpinnerNumberModel(42, 0, 100000, 1));
          JComboBox<String> combo = new JComboBox<>(new String[] {"first choice", "second choice"});
          combo.setEditable(true);
          fields.put("entry", new JTextField());
          fields.put("password", new JPasswordField());
          fields.put("spin", ((JSpinner.DefaultEditor) spin.getEditor()).getTextField());
          fields.put("combo", (JTextComponent) combo.getEditor().getEditorComponent());
          fields.put("text", new JTextArea());
          JComponent[] shown = {
            fields.get("entry"), fields.get("password"), spin, combo, fields.get("text")
          };
          for (int i = 0; i < shown.length; i++) {
            shown[i].setBounds(20, 10 + 50 * i, 440, i == 4 ? 140 : 36);
            frame.add(shown[i]);
          }
          frame.setSize(480, 360);
          frame.setVisible(true);
          DocumentListener listener =
              new DocumentListener() {
                public void insertUpdate(DocumentEvent event) { SwingUtilities.invokeLater(Fields::write); }

                public void removeUpdate(DocumentEvent event) { SwingUtilities.invokeLater(Fields::write); }

                public void changedUpdate(DocumentEvent event) {}
              };
          for (JTextComponent field : fields.values()) field.getDocument().addDocumentListener(listener);
          JTextField entry = (JTextField) fields.get("entry");
          entry.addActionListener(event -> { entered = entry.getText(); write(); });
          reset();
        });
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = commands.readLine()) != null; ) {
      int number = Integer.parseInt(line.trim());
      SwingUtilities.invokeLater(() -> { answered = number; reset(); });
    }
    System.exit(0);
  }
}
