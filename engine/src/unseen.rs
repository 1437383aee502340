//! Characters that nobody sees: they turn the reading direction, take no room or control a terminal, and so can show
//! another text than the one that is there (Unicode TR 36).

/// Whether the letter is one of them. Line breaks and tabs are for whoever asks to say.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
