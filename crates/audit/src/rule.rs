//! The rules, each with a name for reports.

use std::fmt;

sardonyx::names::named! {
    /// A rule that a command log must keep.
    Rule {
        /// Channel, rank and bank exist.
        Range = "channel, rank or bank out of range",
        /// A column command's place decodes to its channel, bank, rank and row.
        Address = "address and coordinates differ",
        /// A column command's request is done when the equations say; an interrupted write leaves its bank when they do.
        Done = "wrong completion",
        /// Fields that a command does not use are 0.
        Unused = "unused field not 0",
        /// A write pauses, is cancelled and goes on as `medium.pausing` has it.
        Interruption = "an array write is interrupted or goes on out of turn",
        /// While its write is interrupted a bank takes no other, and its rank no refresh.
        WriteInterrupted = "a bank's write is interrupted",
        /// The cycles of a channel never go back.
        Order = "out of order",
        /// A channel's bus takes one command a cycle, or in several.
        OneCommand = "two commands in a cycle",
        /// Cycles are halves of the clock's, and ACT, RD and WR need a whole one.
        Edge = "a command at a falling edge",
        /// ACT needs a precharged bank.
        ActivateOpen = "ACT on an open bank",
        /// RD and WR need an open bank.
        ColumnClosed = "column command on a closed bank",
        /// RD and WR need their own row open.
        ColumnRow = "column command on another row",
        /// PRE needs an open bank.
        PrechargeClosed = "PRE on a closed bank",
        /// REF needs all banks of the rank precharged.
        RefreshOpen = "REF with an open bank",
        /// tRCD, or tRCDWR to a write.
        ActivateToColumn = "ACT to column command (tRCD)",
        /// tRAS.
        ActivateToPrecharge = "ACT to PRE (tRAS)",
        /// tRP.
        PrechargeToActivate = "PRE to ACT (tRP)",
        /// tRP, before a refresh.
        PrechargeToRefresh = "PRE to REF (tRP)",
        /// A bank that closes itself: from what held it open to ACT or REF. Checked of any bank, since
        /// an explicit precharge cannot be faster.
        AutoPrecharge = "auto-precharge to ACT or REF (closing, tRP)",
        /// tPPD.
        PrechargeToPrecharge = "PRE to PRE, same rank (tPPD)",
        /// tRRD, or tRC.
        ActivateToActivate = "ACT to ACT, same rank (tRRD, tRC)",
        /// tFAW.
        FourActivates = "fifth ACT in a window (tFAW)",
        /// t32AW.
        ManyActivates = "33rd ACT in a window (t32AW)",
        /// tBURST, tCCD, tRTRS.
        ReadToRead = "RD to RD (tBURST, tCCD, tCCDR, tRTRS)",
        /// tBURST, tCCD, tRTRS.
        WriteToWrite = "WR to WR (tBURST, tCCD, tRTRS)",
        /// The same with the array write.
        WriteToWriteSameBank = "WR to WR, same bank (tWP)",
        /// The bus turns from reading to writing.
        ReadToWrite = "RD to WR (tRTW, or tCL, tBURST, tRTRS, tCWD)",
        /// tWTR.
        WriteToRead = "WR to RD, same rank (tWTR)",
        /// The same with the array write.
        WriteToReadSameBank = "WR to RD, same bank (tWTR, tWP)",
        /// Data of two column commands never meet, and ranks keep tRTRS between them.
        Bus = "data bus overlap",
        /// tRTP.
        ReadToPrecharge = "RD to PRE (tRTP)",
        /// tWR.
        WriteToPrecharge = "WR to PRE (tWR, tWP)",
        /// tRFC.
        AfterRefresh = "command to a refreshing rank (tRFC)",
        /// tRREFD, or tRFCsb, between sets of a rank's banks.
        RefreshToRefresh = "REF to REF of other banks (tRREFD, tRFCsb)",
        /// tREFSBRD, to a bank that is not refreshed.
        RefreshToActivate = "REF to ACT of another bank (tREFSBRD)",
        /// tRRD: a refresh of some banks is an activate to the others.
        ActivateToRefresh = "ACT to REF of other banks (tRRD)",
        /// Two refreshes of a rank are at most nine tREFI apart.
        RefreshInterval = "refreshes too far apart (9 tREFI)",
        /// No rank owes more than eight refreshes, nor waits for one more than nine tREFI at the end.
        RefreshMissing = "refresh missing (tREFI)",
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
