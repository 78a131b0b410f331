//! The journal: records, operations in them, and items.

mod buffer_item;
mod create_item;
mod inode_item;
mod intent;
mod intent_attr;
mod intent_exchange;
mod intent_space;
mod item;
mod operation;
mod quota_item;
pub mod record;
pub mod record_seal;
#[cfg(test)]
mod sample_tests;
mod transaction;

pub use buffer_item::{BufferItem, BufferItemFlags, BufferItemType};
pub use create_item::InodeCreateItem;
pub use inode_item::{
    INODE_LSN_OFFSET, InodeItem, InodeItemFields, LOG_CORE_LEN, NEXT_UNLINKED_OFFSET,
    core_from_log, core_to_log, root_from_log, root_to_log,
};
pub use intent::{Intent, IntentDevice, IntentDone, IntentWork};
pub use intent_attr::{AttrAction, AttrChange, NameValue};
pub use intent_exchange::{Exchange, ExchangeFlags, ExchangeSide};
pub use intent_space::{
    ExtentChange, MappingAction, MappingChange, RefcountAction, RefcountChange, ReverseAction,
    ReverseChange,
};
pub use item::LogItemKind;
pub use operation::{LogClient, OperationFlags, OperationHeader, TransactionHeader};
pub use quota_item::QuotaItem;
pub use record::LogRecordHeader;
pub use transaction::{Assembly, JournalDefect, LogItem, LoggedTransaction};
