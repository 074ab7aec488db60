//! DRAM standards as Ramulator has them: the levels and timings that 2.1 exports as lists without names.

/// A DRAM standard: the columns of a burst, and the names of the lists that Ramulator 2.1 exports.
pub(super) struct Standard {
    pub name: &'static str,
    pub prefetch: u64,
    /// The places of the precharge of a bank and of the read in the exported list of commands; the activate is first.
    pub precharge: usize,
    pub column: usize,
    pub levels: &'static str,
    pub timings: &'static str,
}

const HBM: &str = "channel pseudochannel sid bankgroup bank row column";
const HBM_TIMINGS: &str = "rate nBL nCL nRCDRD nRCDWR nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nCCDR nRRDS nRRDL nWTRS \
                           nWTRL nRTW nFAW nPPD nRFC nRFCpb nRFMab nRFMpb nRREFD nREFI nREFIpb tCK_ps";

pub(super) const STANDARDS: [Standard; 11] = [
    Standard {
        name: "DDR3",
        prefetch: 8,
        precharge: 1,
        column: 3,
        levels: "channel rank bank row column",
        timings: "rate nBL nCL nRCD nRP nRAS nRC nWR nRTP nCWL nCCD nRRD nWTR nFAW nRFC nREFI nCS tCK_ps",
    },
    Standard {
        name: "DDR4",
        prefetch: 8,
        precharge: 1,
        column: 3,
        levels: "channel rank bankgroup bank row column",
        timings: "rate nBL nCL nRCD nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nRRDS nRRDL nWTRS nWTRL nFAW nRFC nREFI nCS \
                  tCK_ps",
    },
    Standard {
        name: "DDR5",
        prefetch: 16,
        precharge: 1,
        column: 3,
        levels: "channel rank bankgroup bank row column",
        timings: "rate nBL nCL nRCD nRP nRAS nRC nWR nRTP nCWL nPPD nCCDS nCCDL nCCDS_WR nCCDL_WR nRRDS nRRDL nWTRS \
                  nWTRL nFAW nRFC nREFI nCS tCK_ps",
    },
    Standard {
        name: "LPDDR5",
        prefetch: 16,
        precharge: 2,
        column: 6,
        levels: "channel rank bankgroup bank row column",
        timings: "rate nBL nBL_max nCL nRCD nRP nRPab nRAS nRC nWR nRTP nCWL nPPD nCCDS nCCDL nCCDS_WR nCCDL_WR nRRDS \
                  nRRDL nWTRS nWTRL nFAW nRFC nRFCpb nREFI nREFIpb nWCKPST nCAS nAAD nCS tCK_ps nPBR2PBR nPBR2ACT",
    },
    Standard {
        name: "GDDR6",
        prefetch: 16,
        precharge: 1,
        column: 3,
        levels: "channel bankgroup bank row column",
        timings: "rate nBL nCL nRCDRD nRCDWR nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nRRDS nRRDL nWTRS nWTRL nFAW \
                  nRFCpb nRREFD nREFI tCK_ps nRFC nPPD",
    },
    Standard {
        name: "HBM2",
        prefetch: 4,
        precharge: 1,
        column: 3,
        levels: "channel pseudochannel bankgroup bank row column",
        timings: "rate nBL nCL nRCDRD nRCDWR nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nRRDS nRRDL nWTRS nWTRL nFAW nRFC \
                  nRFCpb nRREFD nREFI nREFIpb tCK_ps",
    },
    Standard {
        name: "HBM1",
        prefetch: 2,
        precharge: 1,
        column: 3,
        levels: "channel bankgroup bank row column",
        timings: "rate nBL nCL nRCDRD nRCDWR nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nRRDS nRRDL nWTRS nWTRL nFAW nRFC \
                  nRFCpb nRREFD nREFI nREFIpb tCK_ps",
    },
    Standard {
        name: "HBM3",
        prefetch: 8,
        precharge: 1,
        column: 3,
        levels: HBM,
        timings: HBM_TIMINGS,
    },
    Standard {
        name: "HBM4",
        prefetch: 8,
        precharge: 1,
        column: 3,
        levels: HBM,
        timings: HBM_TIMINGS,
    },
    Standard {
        name: "GDDR7",
        prefetch: 32,
        precharge: 1,
        column: 3,
        levels: "channel bank row column",
        timings: "rate nBL nRL nWL nDQERL nRCDRD nRCDWR nRP nRAS nRC nRRD nRREFD nRPD nRTPSB nPPD nWR nCCD nCCDSB nWTR \
                  nWTRSB nRTW nREFI nREFIpb nRFCab nRFCpb nRDREFab nRFMab nRFMpb nRCKSTRT2RD nRD2RCKSTOP nRCKSP2ST \
                  nRCKST2SP nRCKSTOP_LAT nRCKEN nRCK_LS nRCKPST nRCK_HS tCK_ps",
    },
    Standard {
        name: "LPDDR6",
        prefetch: 16,
        precharge: 2,
        column: 5,
        levels: "channel rank bankgroup bank row column",
        timings: "rate nBL_min nBL_max nBL_min_L nBL_max_L nRL nWL nACU nRCDr nRCDw nRP nRPab nRAS nRC nWTP nRTP \
                  nRTP_L nPPD nCCDS nCCDL nCCDL_L nCCDS_WR nCCDL_WR nCCDL_WR_L nRRD nWTRS nWTRL nRTW_S nRTW_L \
                  nRTW_S_L nRTW_L_L nWCK2DQO nRPST nODTLon nODTon_min nFAW nRFC nREFI nWCKPST nCAS nAAD nCS tCK_ps",
    },
];
