"""Opcodes of compute capability 7.0 and later: the pipeline that executes each, as Nsight Compute
counts them (`sm__inst_executed_pipe_*`), and the unit of the model of time that stands for it.

Sources: CUDA Binary Utilities, "Instruction Set Reference", for the opcodes; Nsight Compute,
Kernel Profiling Guide, "Pipelines", for what the pipelines do. Of opcodes that neither assigns to a
pipeline the assignment is an estimate.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from warploom.machinecode.operands import ListingError


class Execution(NamedTuple):
    """The hardware that executes an opcode: a pipeline by Nsight Compute's name, a unit of
    `timing.work.costs`."""

    pipe: str
    unit: str


_TABLE = """
alu int: IADD3 IADD IADD2 IADD32I IABS ISETP IMNMX VIADD VIADDMNMX VIMNMX VIMNMX3 ISCADD IMNMX3
alu int: LOP3 LOP LOP32I PLOP3 PSETP P2R R2P SEL FSEL MOV MOV32I PRMT LEA VABSDIFF VABSDIFF4 BMSK
alu int: SGXT FSETP FSET FMNMX FMNMX3 FCHK CS2R CSMTEST VOTE LEPC GETLMEMBASE SETLMEMBASE F2FP
alu int: I2FP F2IP I2IP ICMP FCMP HMNMX2 VHMNMX PCNT DEPBAR NOP S2UR_ALU
alu shift: SHF SHL SHR BFE BFI
fma fp32: FADD FMUL FFMA FADD32I FMUL32I FFMA32I FSWZADD FADD2 FMUL2 FFMA2
fma imul: IMAD IMUL IMUL32I IMADSP IDP IDP4A XMAD
fp16 fp16: HADD2 HMUL2 HFMA2 HADD2_32I HMUL2_32I HFMA2_32I HSET2 HSETP2
fp64 fp64: DADD DMUL DFMA DSETP DMNMX CLMAD
xu special: MUFU
xu bits: POPC FLO BREV
xu convert: I2F F2I F2F FRND I2I
lsu lsu: LD LDG LDL LDS LDSM ST STG STL STS STSM ATOM ATOMG ATOMS RED REDG REDS LDGSTS CCTL CCTLL
lsu lsu: LDGDEPBAR LDGMC ATOMGMC ARRIVES QSPC MATCH LDTM STTM REDAS STAS
lsu shuffle: SHFL REDUX CREDUX MOVM
lsu control: MEMBAR FENCE ERRBAR CCTLT
adu special_register: S2R
adu lsu: LDC
adu barrier: BAR B2R
adu control: SYNCS ELECT ACQBULK ACQSHMINIT UCGABAR_ARV UCGABAR_WAIT CGAERRBAR ENDCOLLECTIVE
cbu control: BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL BSSY BSYNC BREAK BMOV WARPSYNC YIELD
cbu control: NANOSLEEP BPT RPCMOV RTT PMTRIG PREEXIT SETCTAID SETMAXREG USETMAXREG USETSHMSZ R2B
cbu control: BSYNCU WARPGROUP WARPGROUPSET VOTE_VTG
uniform control: R2UR S2UR UMOV UIADD3 UIMAD UIMNMX UVIMNMX UIABS ULEA ULOP3 ULOP UPLOP3 UPRMT USEL
uniform control: USETP UISETP UP2UR UR2UP UPSETP VOTEU UBMSK USGXT UCLEA ULEPC UGETNEXTWORKID USYNCS
uniform control: UFADD UFFMA UFMUL UFSETP UFMNMX UFSEL UFSET UF2FP UI2F UI2FP UF2F UF2I UI2I UFRND
uniform control: UVIADD UVIRTCOUNT UCVT UREDGR UCCTL UIADD3_64 CS2UR REDUXU UVIADDMNMX UMEMSETS
uniform control: USHF USHL USHR
uniform control: UFLO UPOPC UBREV
uniform control: ULDC LDCU UBLKCP UBLKPF UBLKRED UTMALDG UTMASTG UTMAPF UTMAREDG UTMACCTL
uniform control: UTMACMDFLUSH
uniform control: UTCBAR UTCCP UTCSHIFT UTCATOMSWS UBLKL3PF
tex texture: TEX TLD TLD4 TMML TXD TXQ SULD SUST SURED SUATOM SUQUERY PIXLD FOOTPRINT
tensor tensor: HMMA IMMA BMMA DMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA MUFMA FHADD FHFMA
tensor tensor: UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA SPMETADATA GENMETADATA
"""


def execution_of(name: str) -> Execution:
    """Returns what executes an opcode (without modifiers); ListingError for an unknown one."""
    try:
        return _executions()[name]
    except KeyError:
        raise ListingError(f"nvdisasm printed {name}, which is an unknown opcode") from None


@cache
def _executions() -> dict[str, Execution]:
    found: dict[str, Execution] = {}
    for line in _TABLE.strip().splitlines():
        where, _, names = line.partition(":")
        pipe, unit = where.split()
        found.update((name, Execution(pipe, unit)) for name in names.split())
    return found
